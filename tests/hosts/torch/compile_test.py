"""torch.compile and torch.export through velo's operators."""
import unittest

from torch_case import Torch, distance, torch, transformers, values, velo

FAKES = hasattr(torch.library, "register_fake")
if FAKES:
    from torch._dynamo.backends.debugging import aot_eager


class Compile(Torch):
    @unittest.skipUnless(hasattr(torch, "compile"), "this torch has no compile")
    def test_compiles_whole(self):
        x, gain = values(4, 64), values(64)

        def step(x, gain):
            return velo.swiglu(velo.rms_norm(x, gain) * 2).sum()

        compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
        got = torch.autograd.grad(compiled(x, gain), (x, gain))
        want = torch.autograd.grad(step(x, gain), (x, gain))
        for g, w in zip(got, want):
            self.assertTrue(torch.equal(g, w))


    @unittest.skipUnless(FAKES, "this torch has no register_fake")
    def test_sequence_lengths_compile_once_for_all(self):
        """Fakes keep the symbols: twenty lengths are the first, compiled as a number, and all
        others."""
        gain, table, compilations = values(16), values(12, 16), []

        def step(x, ids, angle):
            q = velo.rms_norm(x, gain).unflatten(-1, (2, 8))
            q = velo.rotary_position_embedding(q, angle.cos(), angle.sin())
            y = velo.swiglu(velo.fusion_attention(q, q * 2, q * 3, causal=True).flatten(2))
            logits = velo.matmul(velo.embedding(ids, table),
                                 velo.cast(velo.add(gain, gain * 2),
                                           torch.float32).view(16, 1)).flatten()
            return velo.cross_entropy(y.flatten(0, 1), ids.flatten() % 8) + y.sum() + logits.sum()

        def backend(graph, inputs):
            compilations.append(graph)
            return aot_eager(graph, inputs)

        torch._dynamo.reset()
        compiled = torch.compile(step, backend=backend, fullgraph=True)
        for length in range(5, 25):
            x, ids = values(2, length, 16), torch.randint(0, 12, (2, length))
            angle = torch.rand(1, length, 1, 8)
            for got, want in zip(torch.autograd.grad(compiled(x, ids, angle), (x, gain, table)),
                                 torch.autograd.grad(step(x, ids, angle), (x, gain, table))):
                self.assertLessEqual(distance(got, want), 1e-5)
        self.assertLessEqual(len(compilations), 2)

    @unittest.skipUnless(FAKES, "this torch has no register_fake")
    def test_export_with_a_dynamic_batch(self):
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.gain = torch.nn.Parameter(torch.randn(16))

            def forward(self, x):
                return velo.swiglu(velo.rms_norm(x, self.gain))

        model = Model()
        program = torch.export.export(model, (torch.randn(3, 4, 16),),
                                      dynamic_shapes={"x": {0: torch.export.Dim("batch")}})
        for batch in (2, 7):
            x = torch.randn(batch, 4, 16)
            self.assertTrue(torch.equal(program.module()(x), model(x)))

    @unittest.skipUnless(FAKES, "this torch has no register_fake")
    def test_an_enabled_model_compiles_whole(self):
        LlamaConfig, LlamaForCausalLM = (
            getattr(transformers(), name) for name in ("LlamaConfig", "LlamaForCausalLM"))
        model = LlamaForCausalLM(
            LlamaConfig(vocab_size=64,
                        hidden_size=32,
                        intermediate_size=48,
                        num_hidden_layers=1,
                        num_attention_heads=2,
                        num_key_value_heads=1,
                        use_cache=False))
        ids = torch.randint(0, 64, (2, 24))

        def gradients(run):
            model.zero_grad()
            run(input_ids=ids, labels=ids).loss.backward()
            return [p.grad.clone() for p in model.parameters()]

        want = gradients(model)
        with velo.enable(model) as done:
            torch._dynamo.reset()
            for got, right in zip(
                    gradients(torch.compile(model, backend="aot_eager", fullgraph=True)), want):
                self.assertLessEqual(distance(got, right), 1e-5)
            self.assertTrue(any(e.called for e in done.entries if e.what == "rms_norm"), str(done))

    @unittest.skipUnless(FAKES, "this torch has no register_fake")
    def test_a_length_binds_an_enabled_model_to_nothing(self):
        """Layers that compare a size when they run leave it alone when torch traces: as many graphs
        as stock, and an export for any length. Width 512, from which on gated MLPs and linear
        layers are replaced."""
        LlamaConfig, LlamaForCausalLM = (
            getattr(transformers(), name) for name in ("LlamaConfig", "LlamaForCausalLM"))
        model = LlamaForCausalLM(
            LlamaConfig(vocab_size=512,
                        hidden_size=512,
                        intermediate_size=1504,
                        num_hidden_layers=1,
                        num_attention_heads=4,
                        num_key_value_heads=2,
                        use_cache=False)).eval()

        class Logits(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = model

            def forward(self, ids):
                return self.model(input_ids=ids).logits

        def compilations():
            graphs = []
            torch._dynamo.reset()
            compiled = torch.compile(
                model,
                backend=lambda graph, inputs: graphs.append(graph) or aot_eager(graph, inputs))
            for batch, length in ((2, 8), (2, 16), (2, 100), (4, 200)):
                with torch.no_grad():
                    compiled(input_ids=torch.randint(0, 512, (batch, length)))
            return len(graphs)

        stock, ids = compilations(), torch.randint(0, 512, (3, 40))
        want = Logits()(ids)
        with velo.enable(model) as done:
            self.assertLessEqual(
                {"matmul for large float32 products", "gate and up into one buffer, swiglu"},
                {what for _, what in done.replaced})
            self.assertEqual(compilations(), stock)
            sizes = {
                "ids": {
                    0: torch.export.Dim("batch", max=64), 1: torch.export.Dim("length",
                                                                              min=2,
                                                                              max=512)
                }
            }
            for strict in (False, True):
                program = torch.export.export(Logits(), (ids[:2, :16].clone(),),
                                              dynamic_shapes=sizes,
                                              strict=strict)
                self.assertLessEqual(distance(program.module()(ids), want), 1e-5)

    @unittest.skipUnless(hasattr(getattr(torch, "compiler", None), "is_exporting"),
                         "this torch does not tell that it exports")
    def test_a_program_made_of_an_enabled_model_stands_without_velo(self):
        """Exported or traced it holds torch's operators, which have gradients and run in a process
        without velo."""
        module, x = transformers().models.llama.modeling_llama, torch.randn(2, 4, 3, 16)
        angle = torch.rand(2, 3, 16)

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = module.LlamaRMSNorm(16)

            def forward(self, x):
                q, k = module.apply_rotary_pos_emb(self.norm(x), x, angle.cos(), angle.sin())
                return torch.nn.functional.scaled_dot_product_attention(q, k, x, is_causal=True)

        model = Model()

        def gradient(program):
            return torch.autograd.grad(program(x).sin().sum(), list(program.parameters()))[0]

        want = gradient(model)
        with velo.enable(model) as done:
            exported = [torch.export.export(model, (x,), strict=strict) for strict in (False, True)]
            traced = torch.jit.trace(model, (x,))
            self.assertLessEqual(distance(gradient(model), want), 1e-5)
            self.assertNotIn("rms_norm", [what for _, what in done.never_called])
        for program in exported:
            self.assertFalse([node for node in program.graph.nodes if "velo" in str(node.target)])
            self.assertTrue(torch.equal(gradient(program.module()), want))
        self.assertNotIn("velo", str(traced.inlined_graph))
        self.assertTrue(torch.equal(gradient(traced), want))

    @unittest.skipUnless(hasattr(torch.library, "get_kernel"), "this torch has no get_kernel")
    def test_attention_answers_in_the_strides_that_compiled_code_counts_on(self):
        forward, backward = (getattr(torch.ops.aten,
                                     "_scaled_dot_product_flash_attention_for_cpu" + end)
                             for end in ("", "_backward"))
        packed, headed = torch.randn(2, 24, 3, 4, 8), torch.randn(2, 4, 24, 8)
        kinds = ([headed] * 3, [packed[:, :, 0].transpose(1, 2)] * 3, list(packed.unbind(2)),
                 [headed.mT.contiguous().mT] * 3, [headed[:1].expand(2, 4, 24, 8), headed, headed])

        def strides(query, key, value):
            out, logsumexp = forward(query, key, value, 0.0, True)
            gradients = backward(torch.empty_like(out), query, key, value, out, logsumexp, 0.0,
                                 True)
            return [t.stride() for t in (out, logsumexp, *gradients)]

        for tensors in kinds:
            want = strides(*tensors)
            with velo.enable():
                self.assertEqual(strides(*tensors), want)


if __name__ == "__main__":
    unittest.main()
