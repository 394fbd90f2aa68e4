"""AdamW in one pass a parameter, in place of torch.optim.AdamW and with its state.

Moments are float32, and parameters of 16 bits keep a float32 master, through state_dict and
load_state_dict too. Parameters that velo does not take (another dtype or device, strides of another
order, a tensor of another's class) go to torch's own step. A step looks at everything before it
changes anything: refused, it changes nothing. A master follows a parameter that somebody else has
written to (model.load_state_dict, torch's own step), where torch counts such writes; it does not
where they go through .data.
"""
import torch

from . import costs
from .dispatcher import overload
from .plain import plain
from .replacement import Shared, attribute

# torch's own, also while enable() has put the class below under its name
_Stock = torch.optim.AdamW
_FLOAT_STATE = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "master")
_update, _norm = overload("apply_fused_adamw", "out"), overload("global_norm", "out")


class AdamW(_Stock):
    """torch.optim.AdamW's arguments: foreach and capturable ask for what this is already, fused for
    torch's own kernel where that is faster.

    max_norm > 0 clips the global gradient norm inside the same pass: the factor never touches the
    gradients.
    """

    max_norm, _rest = 0.0, None

    def __init__(self,
                 params,
                 lr=1e-3,
                 betas=(0.9, 0.999),
                 eps=1e-8,
                 weight_decay=1e-2,
                 amsgrad=False,
                 *,
                 maximize=False,
                 max_norm=0.0,
                 **options):
        if isinstance(max_norm, bool) or not float(max_norm) >= 0:
            raise ValueError(f"AdamW: max_norm must be a number >= 0, got {max_norm!r}")
        self.max_norm, self._written = max_norm, {}
        super().__init__(params,
                         lr,
                         betas,
                         eps,
                         weight_decay,
                         amsgrad,
                         maximize=maximize,
                         **options)
        self._step_supports_amp_scaling = False  # a GradScaler divides the gradients itself

    def __getstate__(self):
        return {**super().__getstate__(), "max_norm": self.max_norm}

    def __setstate__(self, state):
        super().__setstate__(state)
        self._written, self._rest = {}, None

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        groups = [(group, [p
                           for p in group["params"]
                           if p.grad is not None])
                  for group in self.param_groups]
        ours = [
            (p, group) for group, parameters in groups for p in parameters if self._takes(p, group)
        ]
        theirs = [
            self._group_of_torch(group, [p
                                         for p in parameters
                                         if not self._takes(p, group)])
            for group, parameters in groups
        ]
        # behind those that torch may refuse, so that a refused step changes nothing
        theirs += [{**group, "params": [p for p in parameters if self._takes_small(p, group)]}
                   for group, parameters in groups if group.get("fused")]
        ours = [(p, group) for p, group in ours if not self._takes_small(p, group)]
        for parameter, group in ours:
            self._check(parameter, group)
        if self.max_norm > 0 and any(group["params"] for group in theirs):
            raise ValueError(
                "AdamW: max_norm clips the norm of all gradients, and some of these parameters are "
                "not velo's to "
                "update; clip with torch.nn.utils.clip_grad_norm_")
        scale = self._clip([p.grad for p, _ in ours]) if self.max_norm > 0 and ours else None
        if any(group["params"] for group in theirs):
            self._step_of_torch(theirs)
        for parameter, group in ours:
            self._step_of_velo(parameter, group, scale)
        if ours:
            adamw.called()
        return loss

    @staticmethod
    def _takes(parameter, group):
        return (plain(parameter) and parameter.is_contiguous() and plain(parameter.grad) and
                not group.get("differentiable"))

    def _takes_small(self, parameter, group):
        """Whether torch's fused kernel was asked for and is the faster one: it takes many small
        parameters in one call."""
        return (group.get("fused") and parameter.dtype == torch.float32 and self.max_norm == 0 and
                parameter.numel() < costs.fused_elements() and self._takes(parameter, group))

    @staticmethod
    def _group_of_torch(group, parameters):
        """The group with these of its parameters. torch refuses to write to a parameter that is
        expanded (stride 0), but for its fused kernel, which writes past the end of it."""
        expanded = any(stride == 0 and size > 1
                       for p in parameters
                       for size, stride in zip(p.shape, p.stride()))
        return {
            **group, "params": parameters,
            **({"fused": False} if expanded and group.get("fused") else {})
        }

    def _check(self, parameter, group):
        """Refuses what a step of this parameter would refuse."""
        if parameter.grad.shape != parameter.shape:
            raise ValueError(
                f"AdamW: a gradient of {tuple(parameter.grad.shape)} for a parameter of "
                f"{tuple(parameter.shape)}"
            )
        lr, (beta1, beta2) = float(group["lr"]), group["betas"]
        if not (lr >= 0 and group["eps"] >= 0 and 0 <= float(beta1) < 1 and 0 <= float(beta2) < 1):
            raise ValueError(
                f"AdamW: lr and eps must be >= 0 and betas in [0, 1), got lr {lr}, eps "
                f"{group['eps']}, betas "
                f"{group['betas']}")
        for name in _FLOAT_STATE:
            value = self.state[parameter].get(name) if parameter in self.state else None
            if value is not None and (value.shape != parameter.shape or not plain(value)):
                raise ValueError(
                    f"AdamW: state {name} is {value.dtype} {tuple(value.shape)} for a parameter of "
                    f"{tuple(parameter.shape)}")

    def _clip(self, grads):
        total, norm, clip = torch.zeros((), dtype=torch.float64), torch.empty(()), torch.ones(())
        for index, grad in enumerate(grads):
            _norm(grad.contiguous(), total, norm, clip, self.max_norm, index > 0)
        self.norm = norm
        return clip

    def _step_of_torch(self, groups):
        """torch's own step on this optimizer's state, for the parameters that velo does not
        take."""
        if self._rest is None:
            self._rest = _Stock.__new__(_Stock)
            self._rest.__dict__.update(self.__dict__, _rest=None)
        self._rest.state, self._rest.param_groups = self.state, groups
        step = _Stock.step
        (step.__wrapped__ if getattr(step, "hooked", False) else step)(
            self._rest)  # the hooks run around this optimizer's step

    def _step_of_velo(self, parameter, group, scale):
        state = self.state[parameter]
        if "step" not in state:
            state["step"] = torch.zeros((), dtype=torch.float32)
            state["exp_avg"], state["exp_avg_sq"] = (
                torch.zeros_like(parameter, dtype=torch.float32) for _ in range(2))
        if group["amsgrad"] and "max_exp_avg_sq" not in state:
            state["max_exp_avg_sq"] = torch.zeros_like(parameter, dtype=torch.float32)
        for name in _FLOAT_STATE:
            if name in state and not state[name].is_contiguous():
                state[name] = state[name].contiguous()
        if parameter.dtype != torch.float32:
            self._keep_master(parameter, state)
        state["step"] += 1
        (beta1, beta2), master = group["betas"], state.get("master")
        _update(parameter.grad.contiguous(), scale, parameter, master, state["exp_avg"],
                state["exp_avg_sq"],
                state.get("max_exp_avg_sq") if group["amsgrad"] else None, int(state["step"]),
                float(group["lr"]), float(beta1), float(beta2), group["eps"], group["weight_decay"],
                group["amsgrad"], group["maximize"])
        if master is not None:
            self._written[parameter] = parameter._version

    def _keep_master(self, parameter, state):
        """Lets the float32 master be what rounds to the parameter, where it was written to since
        the last step."""
        if "master" not in state:
            state["master"] = parameter.float()
        elif self._written.get(parameter) != parameter._version:
            state["master"] = torch.where(state["master"].to(parameter.dtype) == parameter,
                                          state["master"], parameter.float())

    def load_state_dict(self, state_dict):
        """As torch's, which would round the moments and masters of parameters of 16 bits to their
        type."""
        super().load_state_dict(state_dict)
        saved = [index for group in state_dict["param_groups"] for index in group["params"]]
        held = [p for group in self.param_groups for p in group["params"]]
        for index, parameter in zip(saved, held):
            given, state = state_dict["state"].get(index, {}), self.state.get(parameter, {})
            if parameter.dtype == torch.float32 or not plain(parameter):
                continue
            for name in _FLOAT_STATE:
                if name in given:
                    state[name] = given[name].detach().to(parameter.device,
                                                          torch.float32,
                                                          copy=True)


adamw = Shared(attribute(torch.optim, "AdamW", lambda before, shared: AdamW))
