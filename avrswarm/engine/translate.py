"""From a flash image to a table of native code, once per image, kept on disk.

``translate`` compiles now; ``Translation`` compiles in the background while the interpreter already
runs. The cache is keyed by the image, the package's sources, the compiler and the processor.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import tempfile
import threading
from pathlib import Path
from typing import Any

import llvmlite
import numpy as np
from llvmlite import binding
from numpy.typing import NDArray

from avrswarm.chip.native import ENTER, NO_BLOCKS
from avrswarm.engine.emit import write_module
from avrswarm.engine.flow import analyse
from avrswarm.isa.decode import FLASH_WORDS, decode_image
from avrswarm.jit import CACHE_FOLDER, JIT_DISABLED

_loaded: dict[str, tuple[Any, NDArray[np.int64]]] = {}
"""Tables by key, with the execution engines that keep their code alive."""
_lock = threading.Lock()


def translate(flash: NDArray[np.uint16]) -> NDArray[np.int64]:
    """Return addresses of native code by word address for a flash image; see ``chip.native``."""
    if JIT_DISABLED:
        return NO_BLOCKS
    machine = _target_machine()
    key = _key(flash, machine)
    with _lock:
        if key not in _loaded:
            _loaded[key] = _load(_object_code(flash, machine, CACHE_FOLDER / f"{key}.o"))
        return _loaded[key][1]


class Translation:
    """Native code of a flash image, compiled in the background.

    Parameters
    ----------
    flash
        The image; it must not change.
    wait
        Compile before going on.
    """

    def __init__(self, flash: NDArray[np.uint16], wait: bool = False) -> None:
        self._flash = flash.copy()
        self._blocks = NO_BLOCKS
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()
        if wait:
            self.wait()

    def wait(self) -> None:
        """Wait until it is compiled."""
        self._thread.join()

    def _work(self) -> None:
        try:
            self._blocks = translate(self._flash)
        except BaseException as failure:
            self._failure = failure

    @property
    def blocks(self) -> NDArray[np.int64]:
        """What there is by now: all of it, or an empty table."""
        if self._failure is not None:
            raise self._failure
        return self._blocks


def _target_machine() -> Any:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_default_triple()
    return target.create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=binding.get_host_cpu_features().flatten(),
        opt=2,
        reloc="pic",
        codemodel="small",  # one module, which jumps nowhere else: all of it is near
    )


def _key(flash: NDArray[np.uint16], machine: Any) -> str:
    digest = hashlib.sha256(flash.tobytes())
    digest.update(f"{llvmlite.__version__} {machine.triple}".encode())
    digest.update(binding.get_host_cpu_name().encode())
    digest.update(binding.get_host_cpu_features().flatten().encode())
    return digest.hexdigest()[:24]


def _object_code(flash: NDArray[np.uint16], machine: Any, path: Path) -> bytes:
    """Return the compiled program, from disk if it is there."""
    try:
        return path.read_bytes()
    except OSError:
        pass
    code = np.zeros(FLASH_WORDS, np.uint32)
    decode_image(flash, code)
    module = binding.parse_assembly(write_module(analyse(flash, code)))
    module.verify()
    tuning = binding.create_pipeline_tuning_options(speed_level=1)
    builder = binding.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    content: bytes = machine.emit_object(module)
    _keep(path, content)
    return content


def _keep(path: Path, content: bytes) -> None:
    """Write a file in one go, so that another process never sees half of it."""
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(content)
        os.replace(file.name, path)
    except OSError:
        return  # a cache that cannot be written is no reason to stop


def _load(content: bytes) -> tuple[Any, NDArray[np.int64]]:
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _target_machine())
    engine.add_object_file(binding.ObjectFileRef.from_data(content))
    engine.finalize_object()
    address = engine.get_global_value_address("blocks")
    table = (ctypes.c_int64 * (ENTER + 1)).from_address(address)
    return engine, np.ctypeslib.as_array(table).copy()
