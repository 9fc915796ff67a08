"""Compile many small kernels as one program: a numba pipeline that optimises once, at the entry.

numba's default pipeline turns every compiled function into machine code of its own and links and
optimises all its callees again at each level of calls. With two hundred kernels that is most of the
compile time, and wasted: only the entry functions are ever called from Python. Here a kernel stops
after LLVM IR; an entry links the IR of every kernel it reaches, once, and optimises the whole.

Built on numba's documented way to customise the compiler (``pipeline_class``); the library classes
below override some steps of its code generator.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, _LowerResult
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering

MANY_ARGUMENTS = 64
"""A kernel with more machine-level arguments becomes part of its callers: an array is seven of
them, and to hand over all arrays of a swarm would cost more than most kernels do."""


class _KernelLibrary(JITCodeLibrary):
    """IR of one kernel; no optimisation, no machine code, callees not linked in."""

    def add_ir_module(self, module: Any) -> None:
        for function in module.functions:
            if not function.is_declaration and len(function.args) > MANY_ARGUMENTS:
                function.attributes.add("alwaysinline")
        super().add_ir_module(module)

    def finalize(self) -> None:
        self._raise_if_finalized()
        self._finalize_dynamic_globals()
        self._finalized = True


class _EntryLibrary(JITCodeLibrary):
    """An entry and all kernels it reaches, optimised together."""

    def finalize(self) -> None:
        # Callers before callees: LLVM links a function of this kind only if it is already asked
        # for.
        finished: list[Any] = []
        seen: set[int] = set()

        def visit(library: Any) -> None:
            if id(library) in seen:
                return
            seen.add(id(library))
            if isinstance(library, _KernelLibrary):
                for callee in library._linking_libraries:
                    visit(callee)
            finished.append(library)

        for library in self._linking_libraries:
            visit(library)
        self._linking_libraries = finished[::-1]
        self._own = self._defined_functions()
        super().finalize()

    def _defined_functions(self) -> set[str]:
        return {found.name for found in self._final_module.functions if not found.is_declaration}

    def _optimize_final_module(self) -> None:
        # Nobody calls a kernel from outside: the compiler may give it another calling convention,
        # leave out arguments and results that nobody uses, and make a part of its caller of it.
        for name in self._defined_functions() - self._own:
            self._final_module.get_function(name).linkage = "internal"
        super()._optimize_final_module()


@register_pass(mutates_CFG=True, analysis_only=False)
class _KernelLowering(NativeLowering):
    _name = "avrswarm_kernel_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = _KernelLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        lowered = state["cr"]

        # numba files an overload under its Python-callable function, which a kernel does not have.
        # A built-in method of an object of our own is accepted as such a key; this one raises when
        # called.
        empty: list[int] = []
        key = empty.pop
        state.targetctx.insert_user_function(key, lowered.fndesc, [state.library])
        state["cr"] = _LowerResult(lowered.fndesc, lowered.call_helper, cfunc=key, env=lowered.env)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _EntryLowering(NativeLowering):
    _name = "avrswarm_entry_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = _EntryLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return bool(super().run_pass(state))


class KernelCompiler(CompilerBase):
    """Pipeline for functions that only compiled code calls."""

    lowering: type[NativeLowering] = _KernelLowering

    def define_pipelines(self) -> list[Any]:
        """Return numba's nopython pipeline with its lowering pass replaced."""
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.passes = [
            (self.lowering, description) if stage is NativeLowering else (stage, description)
            for stage, description in pipeline.passes
        ]
        pipeline._finalized = False
        pipeline.finalize()
        return [pipeline]


class EntryCompiler(KernelCompiler):
    """Pipeline for functions that Python calls."""

    lowering = _EntryLowering


def share_one_version(dispatcher: Any) -> None:
    """Make a kernel compile once for all integer arguments.

    numba would compile it anew for every literal number and every ``IntEnum`` it is called with.
    """
    original = dispatcher.get_call_template

    def get_call_template(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        return original(tuple(_plain(argument) for argument in arguments), keywords)

    dispatcher.get_call_template = get_call_template


def _plain(argument: Any) -> Any:
    plain = types.unliteral(argument)
    return types.int64 if isinstance(plain, types.IntEnumMember) else plain
