"""Losses and optimizers against torch: a part of operators_test.py."""
from comparison import TYPES, F, leaf, torch, values


class TrainingCases:
    def test_cross_entropy(self):
        for dtype in TYPES:
            for reduction in ("mean", "sum", "none"):
                logits, targets = values(90, 260, dtype=dtype,
                                         scale=3), torch.randint(0, 260, (90,))
                targets[::7] = -100
                loss = torch.empty(90) if reduction == "none" else torch.empty(())
                dloss = torch.rand_like(loss)
                lse = torch.empty(90)
                a = leaf(logits)
                truth = F.cross_entropy(a, targets, reduction=reduction)
                truth.backward(dloss)
                self.velo.cross_entropy(logits=logits,
                                        targets=targets,
                                        loss=loss,
                                        lse=lse,
                                        reduction=reduction)
                self.velo.cross_entropy_backward(dloss=dloss,
                                                 logits=logits,
                                                 targets=targets,
                                                 lse=lse,
                                                 dlogits=logits,
                                                 reduction=reduction)
                self.close("loss", loss, truth)
                self.close("dlogits in place", logits, a.grad)

    def test_cross_entropy_of_the_classes_of_one_rank(self):
        for dtype in TYPES:
            logits, targets = values(9, 40, dtype=dtype), torch.randint(0, 30, (9,))
            a = leaf(logits)
            truth = F.cross_entropy(a[:, :30], targets, reduction="none", label_smoothing=0.1)
            truth.sum().backward()
            loss, lse, dlogits = torch.empty(9), torch.empty(9), torch.empty_like(logits)
            given = {"logits": logits, "targets": targets, "vocab_size": 30,
                     "label_smoothing": 0.1}
            self.velo.vocab_parallel_cross_entropy(loss=loss, lse=lse, **given)
            self.velo.vocab_parallel_cross_entropy_backward(dloss=torch.ones(9), lse=lse,
                                                            dlogits=dlogits, **given)
            self.close("loss", loss, truth)
            self.close("dlogits", dlogits, a.grad)

    def test_norms_of_the_elements_of_one_rank(self):
        for dtype in TYPES:
            x, dy = values(30, 200, dtype=dtype), values(30, 200, dtype=dtype)
            gamma, beta = values(200), values(200)
            y, dx = torch.empty_like(x), torch.empty_like(x)
            mean, rstd = torch.empty(30, 1), torch.empty(30, 1)
            dgamma, dbeta = torch.empty(200), torch.empty(200)
            a, g, b = leaf(x), leaf(gamma), leaf(beta)
            truth = F.layer_norm(a, (200,), g, b)
            truth.backward(dy.float())
            self.velo.parallel_layer_norm(x=x, gamma=gamma, beta=beta, y=y, mean=mean, rstd=rstd)
            self.velo.parallel_layer_norm_backward(dy=dy, x=x, gamma=gamma, mean=mean, rstd=rstd,
                                                   dx=dx, dgamma=dgamma, dbeta=dbeta)
            for name, got, want in (("y", y, truth), ("dx", dx, a.grad), ("dgamma", dgamma, g.grad),
                                    ("dbeta", dbeta, b.grad)):
                self.close(f"layer_norm {name}", got, want)
            a, g = leaf(x), leaf(gamma)
            truth = a * torch.rsqrt(a.pow(2).mean(-1, keepdim=True) + 1e-5) * g
            truth.backward(dy.float())
            self.velo.parallel_rms_norm(x=x, gamma=gamma, y=y, rstd=rstd, epsilon=1e-5)
            self.velo.parallel_rms_norm_backward(dy=dy, x=x, gamma=gamma, rstd=rstd, dx=dx,
                                                 dgamma=dgamma)
            for name, got, want in (("y", y, truth), ("dx", dx, a.grad),
                                    ("dgamma", dgamma, g.grad)):
                self.close(f"rms_norm {name}", got, want)

    def test_cross_entropy_weighted_and_smoothed(self):
        weights = torch.rand(260) + 0.5
        for dtype in TYPES:
            for reduction in ("mean", "sum", "none"):
                for more in ({"class_weights": weights}, {"label_smoothing": 0.1},
                             {"class_weights": weights, "label_smoothing": 0.25}):
                    logits = values(90, 260, dtype=dtype, scale=3)
                    targets = torch.randint(0, 260, (90,))
                    targets[::7] = -100
                    loss = torch.empty(90) if reduction == "none" else torch.empty(())
                    dloss, lse = torch.rand_like(loss), torch.empty(90)
                    a = leaf(logits)
                    truth = F.cross_entropy(a, targets, more.get("class_weights"),
                                            reduction=reduction,
                                            label_smoothing=more.get("label_smoothing", 0.0))
                    truth.backward(dloss)
                    both = dict(logits=logits, targets=targets, lse=lse, reduction=reduction,
                                **more)
                    self.velo.cross_entropy(loss=loss, **both)
                    self.velo.cross_entropy_backward(dloss=dloss, dlogits=logits, **both)
                    self.close("loss", loss, truth)
                    self.close("dlogits in place", logits, a.grad)

    def test_apply_fused_adamw(self):
        p = values(1000)
        reference = torch.nn.Parameter(p.clone())
        adamw = torch.optim.AdamW([reference],
                                  lr=1e-2,
                                  betas=(0.9, 0.95),
                                  eps=1e-8,
                                  weight_decay=0.1)
        half, master = p.bfloat16(), p.bfloat16().float()
        m, v, m2, v2 = (torch.zeros(1000) for _ in range(4))
        count, rate = torch.zeros((), dtype=torch.int64), torch.tensor(1e-2)
        shadow = torch.nn.Parameter(master.clone())
        shadow_adamw = torch.optim.AdamW([shadow],
                                         lr=1e-2,
                                         betas=(0.9, 0.95),
                                         eps=1e-8,
                                         weight_decay=0.1)
        for step in range(1, 6):
            grad = values(1000)
            options = {
                "step": step, "lr": 1e-2, "beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8,
                "weight_decay": 0.1
            }
            self.velo.apply_fused_adamw(grad=grad, param=p, m=m, v=v, **options)
            reference.grad = grad.clone()
            adamw.step()
            coarse = grad.bfloat16()
            count += 1
            options.update(step=1, lr=1.0, step_tensor=count, lr_tensor=rate)
            self.velo.apply_fused_adamw(grad=coarse,
                                        param=half,
                                        master=master,
                                        m=m2,
                                        v=v2,
                                        **options)
            shadow.grad = coarse.float()
            shadow_adamw.step()
        self.close("param", p, reference.detach())
        self.close("master", master, shadow.detach())
        self.assertTrue(torch.equal(half, master.bfloat16()))

    def test_apply_fused_ema_adamw(self):
        for mode in (0, 1):
            param, m, v, average = values(1000), torch.zeros(1000), torch.zeros(1000), values(1000)
            reference, truth = param.clone().requires_grad_(), average.clone()
            kind = torch.optim.AdamW if mode else torch.optim.Adam
            adam = kind([reference], lr=0.01, weight_decay=0.1)
            for step in range(1, 4):
                grad = values(1000)
                self.velo.apply_fused_ema_adamw(grad=grad,
                                                param=param,
                                                m=m,
                                                v=v,
                                                ema=average,
                                                step=step,
                                                lr=0.01,
                                                ema_decay=0.9,
                                                mode=mode,
                                                weight_decay=0.1)
                reference.grad = grad
                adam.step()
                truth = 0.9 * truth + 0.1 * reference.detach()
            self.close("param", param, reference.detach())
            self.close("ema", average, truth)

    def test_multi_tensor_adamw(self):
        params = [values(size) for size in (1, 300, 7, 5000)]
        references = [torch.nn.Parameter(p.clone()) for p in params]
        adamw = torch.optim.AdamW(references, lr=1e-2, betas=(0.9, 0.95), weight_decay=0.1)
        m, v = ([torch.zeros_like(p) for p in params] for _ in range(2))
        for step in range(1, 4):
            grads = [values(p.numel()) for p in params]
            self.velo.multi_tensor_adamw(grad=grads,
                                         param=params,
                                         m=m,
                                         v=v,
                                         step=step,
                                         lr=1e-2,
                                         beta2=0.95,
                                         weight_decay=0.1)
            for reference, grad in zip(references, grads):
                reference.grad = grad
            adamw.step()
        for p, reference in zip(params, references):
            self.close("param", p, reference.detach())

    def test_multi_tensor_ema_adamw(self):
        params = [values(size) for size in (300, 7)]
        average, truth = ([p.clone() for p in params] for _ in range(2))
        references = [p.clone().requires_grad_() for p in params]
        adam = torch.optim.Adam(references, lr=0.01, weight_decay=0.1)
        m, v = ([torch.zeros_like(p) for p in params] for _ in range(2))
        for step in range(1, 4):
            grads = [values(p.numel()) for p in params]
            self.velo.multi_tensor_ema_adamw(grad=grads,
                                             param=params,
                                             m=m,
                                             v=v,
                                             ema=average,
                                             step=step,
                                             lr=0.01,
                                             ema_decay=0.9,
                                             mode=0,
                                             weight_decay=0.1)
            for reference, grad in zip(references, grads):
                reference.grad = grad
            adam.step()
            truth = [0.9 * t + 0.1 * r.detach() for t, r in zip(truth, references)]
        for p, reference, kept, t in zip(params, references, average, truth):
            self.close("param", p, reference.detach())
            self.close("ema", kept, t)

    def test_bf16_param_split_and_merge(self):
        master = values(1000)
        for rounding in ("half_up", "half_even"):
            param, residual = torch.empty(1000, dtype=torch.bfloat16), torch.empty(
                1000, 2, dtype=torch.uint8)
            v, back = torch.rand(1000), torch.empty(1000)
            kept = v.clone()
            self.velo.bf16_param_split(master=master, v=v, param=param, residual=residual,
                                       rounding=rounding)
            self.velo.bf16_param_merge(param=param, residual=residual, v=v, master=back,
                                       rounding=rounding)
            self.assertTrue(torch.equal(back, master) and torch.equal(v, kept))
            if rounding == "half_even":
                self.assertTrue(torch.equal(param, master.bfloat16()))
            self.close("param", param, master)

    def test_global_norm(self):
        grads = [values(1000), values(7, 33), values(4096, dtype=torch.bfloat16)]
        total, norm, clip = torch.zeros((), dtype=torch.float64), torch.empty(()), torch.empty(())
        for index, grad in enumerate(grads):
            self.velo.global_norm(x=grad,
                                  sum_of_squares=total,
                                  norm=norm,
                                  clip=clip,
                                  max_norm=1.0,
                                  accumulate=index > 0)
        truth = torch.cat([grad.float().flatten() for grad in grads]).double().norm()
        self.close("norm", norm, truth)
        self.close("clip", clip, 1.0 / (truth + 1e-6))
        self.velo.multi_tensor_global_norm(x=grads, sum_of_squares=total, norm=norm, clip=clip)
        self.close("norm of a list", norm, truth)
        self.close("clip of a list", clip, 1.0 / (truth + 1e-6))
