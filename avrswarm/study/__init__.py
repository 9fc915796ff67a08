"""What people ask of firmware and swarms, answered with the layers before this one."""
