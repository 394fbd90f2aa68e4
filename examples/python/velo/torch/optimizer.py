"""AdamW in one pass a parameter."""
import torch

from .binding import call


class AdamW(torch.optim.Optimizer):
    """torch.optim.AdamW in one pass a parameter. Moments are float32; bfloat16 parameters keep a float32 master.

    max_norm > 0 clips the global gradient norm inside the same pass: the factor never touches the gradients.
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, maximize=False,
                 max_norm=0.0):
        if lr < 0 or eps < 0 or not all(0 <= beta < 1 for beta in betas):
            raise ValueError(f"AdamW: lr and eps must be >= 0 and betas in [0, 1), got lr {lr}, eps {eps}, betas {betas}")
        self.max_norm = max_norm
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
                                  "maximize": maximize})

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        clip = self._clip() if self.max_norm > 0 else None
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, group, clip)
        return loss

    def _clip(self):
        total, norm, clip = torch.zeros((), dtype=torch.float64), torch.empty(()), torch.ones(())
        grads = [p.grad for group in self.param_groups for p in group["params"] if p.grad is not None]
        for index, grad in enumerate(grads):
            call("global_norm", x=grad.contiguous(), sum_of_squares=total, norm=norm, clip=clip, max_norm=self.max_norm,
                 accumulate=index > 0)
        self.norm = norm
        return clip

    def _update(self, parameter, group, clip):
        state = self.state[parameter]
        if not state:
            state["step"] = 0
            state["exp_avg"], state["exp_avg_sq"] = (torch.zeros_like(parameter, dtype=torch.float32) for _ in range(2))
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = torch.zeros_like(parameter, dtype=torch.float32)
            if parameter.dtype == torch.bfloat16:
                state["master"] = parameter.float()
        state["step"] += 1
        call("apply_fused_adamw", grad=parameter.grad.contiguous(), scale=clip, param=parameter, master=state.get("master"),
             m=state["exp_avg"], v=state["exp_avg_sq"], v_max=state.get("max_exp_avg_sq"), step=state["step"],
             lr=group["lr"], beta1=group["betas"][0], beta2=group["betas"][1], epsilon=group["eps"],
             weight_decay=group["weight_decay"], amsgrad=group["amsgrad"], maximize=group["maximize"])
        if hasattr(torch.autograd.graph, "increment_version"):
            torch.autograd.graph.increment_version(parameter)  # torch did not see the update happen
