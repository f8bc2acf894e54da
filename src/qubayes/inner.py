"""How numba compiles what only kernels call: as far as LLVM's code, which is optimised and emitted with the caller.

numba has no setting for that, but lets a function have a compiler of its own. What that one replaces is no part of
numba's interface, so versions that it was not tried with compile in their usual way, which only takes longer.
"""

from typing import Any

from numba import version_info
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering

TRIED = (0, 68)  # the newest version


class InnerLibrary(JITCodeLibrary):
    """The code of a function that is linked into others and never called by itself."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class InnerLowering(NativeLowering):
    """numba's own step from typed code to LLVM's, without an address for Python to call."""

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


class InnerCompiler(CompilerBase):
    """numba's compiler with that step in place of its own."""

    def define_pipelines(self) -> list[Any]:
        """The steps, as numba asks for them."""
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.passes = [(InnerLowering if step is NativeLowering else step, why) for step, why in pipeline.passes]
        pipeline.finalize()
        return [pipeline]


INNER: dict[str, Any] = {"pipeline_class": InnerCompiler} if version_info.short <= TRIED else {}  # settings of `njit`
