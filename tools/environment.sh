# Sourced by run.sh and test.sh: a virtual environment of the project's own, in .venv.
# Nothing outside the project folder is changed, except missing Debian packages where asked for.

say() { printf '%s\n' "$*" >&2; }

# apt_install PACKAGE...: install Debian packages, as root or through sudo. Returns 1 where that is not possible.
apt_install() {
    command -v apt-get >/dev/null || return 1
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || return 1
        as_root=(sudo)
    fi
    say "installing Debian packages: $*"
    "${as_root[@]}" apt-get update -qq &&
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2
}

# find_python: print the first Python that is new enough.
find_python() {
    local candidate
    for candidate in ${PYTHON:+"$PYTHON"} python3 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    say "avrswarm needs Python 3.11 or newer; set PYTHON=/path/to/python if it has another name"
    return 1
}

# make_venv: create .venv where there is none (or where its Python no longer starts).
make_venv() {
    if .venv/bin/python -c '' 2>/dev/null; then return; fi
    local python
    python=$(find_python)
    if ! "$python" -c 'import ensurepip' 2>/dev/null; then
        apt_install python3-venv || {
            say "Python's venv module is missing; on Debian: apt-get install python3-venv"
            return 1
        }
    fi
    say "creating .venv"
    rm -rf .venv
    "$python" -m venv .venv
}

# install_package [EXTRA]: install the package (editable, so source edits count at once) when pyproject.toml changed.
install_package() {
    local extra=${1:-} stamp=".venv/installed${1:+-$1}" wanted
    wanted=$(sha256sum pyproject.toml)
    if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then return; fi
    say "installing avrswarm${extra:+ with [$extra]} into .venv (a minute or two the first time)"
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --editable ".${extra:+[$extra]}"
    printf '%s\n' "$wanted" >"$stamp"
}
