"""T5 of transformers: a training step with padded labels, then generation from an encoder."""

import torch
from transformers import T5Config, T5ForConditionalGeneration

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
CONFIG = T5Config(d_model=128, d_kv=32, d_ff=256, num_layers=2, num_heads=4, vocab_size=500, decoder_start_token_id=0)


def main():
    torch.manual_seed(0)
    model = T5ForConditionalGeneration(CONFIG).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(6):
        source = torch.randint(2, 500, (4, 20)).to(DEVICE)
        labels = torch.randint(2, 500, (4, 10)).to(DEVICE)
        labels[labels < 20] = -100
        out = model(input_ids=source, labels=labels)
        optimizer.zero_grad()
        out.loss.backward()
        optimizer.step()
        print(float(out.loss), (labels != -100).sum().item())
    model.eval()
    source = torch.randint(2, 500, (3, 20), device=DEVICE)
    for options in ({}, {"num_beams": 4, "early_stopping": True}, {"do_sample": True, "top_p": 0.8}):
        tokens = model.generate(source, max_new_tokens=10, min_new_tokens=3, **options)
        print([[token for token in row if token > 1] for row in tokens.tolist()])


if __name__ == "__main__":
    main()
