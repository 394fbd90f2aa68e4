"""velo for PyTorch: its operators as torch operators with gradients, and one line that speeds up a
model.

    import velo.torch
    velo.torch.enable(model)            # replaces what velo does faster; print() the result to see
                                        what, and what not
    optimizer = velo.torch.AdamW(model.parameters(), lr=1e-3)

Nothing is compiled and nothing is copied: a torch tensor becomes a velo_tensor over the same
memory. The library describes itself, so no struct and no operator is listed here: each has a
function of its name. binding.py is the library, dispatcher.py its operators in torch's dispatcher,
functions.py those with gradients, optimizer.py AdamW, enable.py the one line. Works with torch 1.13
and later.
"""
from .binding import VeloError, call, infer, library
from .enable import Replacement, enable
from .functions import FUNCTIONS as _functions
from .optimizer import AdamW

globals().update(_functions)
__all__ = ["AdamW", "Replacement", "VeloError", "call", "enable", "infer", "library", *_functions]
