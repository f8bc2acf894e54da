"""How numba compiles our kernels: in less time than it would by itself.

- What only kernels call is compiled as far as LLVM's code, which is optimised and emitted with the caller. By itself
  numba does both for every function, and then once more inside each one that calls it: a fifth of the time.
- What takes the arguments of a kernel from Python, long and run once a call, is not optimised: a sixteenth.

numba has no settings for that, but lets a function have a compiler of its own. What that one replaces is no part of
numba's interface, so versions that it was not tried with compile in their usual way, which only takes longer.
"""

from typing import Any

from numba import version_info
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import InlineOverloads, NativeLowering, NopythonRewrites
from numba.core.untyped_passes import InlineClosureLikes

TRIED = (0, 68)  # the newest version
NEEDLESS = (InlineClosureLikes, InlineOverloads, NopythonRewrites)  # closures; what numba inlines; sums of whole arrays


class LeafLibrary(JITCodeLibrary):
    """The code of a kernel that Python calls."""

    def add_ir_module(self, ir_module: Any) -> None:
        """Add code, that for Python's arguments as it is."""
        for function in ir_module.functions:
            if function.name.startswith("_ZN7cpython") and not function.is_declaration:
                function.attributes.add("noinline")
                function.attributes.add("optnone")
        super().add_ir_module(ir_module)


class InnerLibrary(JITCodeLibrary):
    """The code of a function that is linked into others and never called by itself."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class LeafLowering(NativeLowering):
    """numba's own step from typed code to LLVM's, and on to the processor's."""

    _name = "qubayes_leaf_lowering"

    def run_pass(self, state: Any) -> bool:
        """Leave a function that Python can call in the state."""
        state.library = LeafLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return bool(super().run_pass(state))


@register_pass(mutates_CFG=True, analysis_only=False)
class InnerLowering(NativeLowering):
    """The same step without an address for Python to call."""

    _name = "qubayes_inner_lowering"

    def run_pass(self, state: Any) -> bool:
        """Leave LLVM's code in the state."""
        state.library = InnerLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        state.flags.no_compile = True
        super().run_pass(state)
        nothing: dict[Any, Any] = {}
        uncallable = nothing.popitem  # numba knows a function by what Python would call: this raises
        state.targetctx.insert_user_function(uncallable, state.cr.fndesc, [state.library])
        state.cr = state.cr._replace(cfunc=uncallable)
        return True


def _pipelines(state: Any, lowering: type) -> list[Any]:
    """numba's steps, with this one in place of its own, and without those that look for what no kernel has."""
    pipeline = DefaultPassBuilder.define_nopython_pipeline(state)
    steps = [(lowering if step is NativeLowering else step, why) for step, why in pipeline.passes]
    pipeline.passes = [(step, why) for step, why in steps if step not in NEEDLESS]
    pipeline.finalize()
    return [pipeline]


class LeafCompiler(CompilerBase):
    """Compiles kernels."""

    def define_pipelines(self) -> list[Any]:
        """The steps, as numba asks for them."""
        return _pipelines(self.state, LeafLowering)


class InnerCompiler(CompilerBase):
    """Compiles what only kernels call."""

    def define_pipelines(self) -> list[Any]:
        """The steps, as numba asks for them."""
        return _pipelines(self.state, InnerLowering)


_IS_TRIED = version_info.short <= TRIED
LEAF: dict[str, Any] = {"pipeline_class": LeafCompiler} if _IS_TRIED else {}  # settings of `njit`
INNER: dict[str, Any] = {"pipeline_class": InnerCompiler} if _IS_TRIED else {}
