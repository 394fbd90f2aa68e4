"""enable() on five families of transformers: gradients against stock, in float32 within 1e-5 of
their norm, in bfloat16 no farther from the float32 ones than 1.2 times what stock bfloat16 is.

The families differ in what velo has to recognize or leave: RMS norms with a gain of 1 + weight, one
product for gate and up, GELU in place of SiLU, LayerNorm, norms of queries and keys, partial
rotation.
"""
import copy
import unittest

from torch_case import Torch, torch, transformers, velo

SIZES = dict(vocab_size=512,
             hidden_size=128,
             intermediate_size=352,
             num_hidden_layers=2,
             num_attention_heads=4,
             num_key_value_heads=2,
             max_position_embeddings=128,
             pad_token_id=0,
             use_cache=False)
FAMILIES = {
    "Llama": {}, "Qwen3": {"head_dim": 32}, "Gemma": {"head_dim": 32}, "Phi3": {}, "StableLm": {}
}


class Families(Torch):
    def gradients(self, model, ids):
        model.zero_grad()
        model(input_ids=ids, labels=ids).loss.backward()
        return torch.cat([p.grad.float().flatten() for p in model.parameters()])

    def check(self, family):
        library = transformers()
        config = getattr(library, family + "Config")(**SIZES, **FAMILIES[family])
        torch.manual_seed(7)
        model = getattr(library, family + "ForCausalLM")(config).train()
        ids = torch.randint(0, 512, (2, 96))
        exact = self.gradients(model, ids)
        rounded = copy.deepcopy(model).bfloat16()
        stock = self.gradients(rounded, ids)
        with velo.enable(model) as done:
            got = self.gradients(model, ids)
            self.assertTrue(any(e.called for e in done.entries if "attention" in e.what), str(done))
        self.assertLessEqual(float((got - exact).norm() / exact.norm()), 1e-5, family)
        with velo.enable(rounded):
            got = self.gradients(rounded, ids)
        self.assertLessEqual(float((got - exact).norm()), 1.2 * float((stock - exact).norm()),
                             family)

    def test_llama(self):
        self.check("Llama")

    def test_qwen3(self):
        self.check("Qwen3")

    def test_gemma(self):
        self.check("Gemma")

    def test_phi3(self):
        self.check("Phi3")

    def test_stablelm(self):
        self.check("StableLm")


if __name__ == "__main__":
    unittest.main()
