"""timm's Swin Transformer: inference with several inputs sizes, features, and a look at each output."""

import timm
import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    model = timm.create_model("swin_tiny_patch4_window7_224", num_classes=50, strict_img_size=False).to(DEVICE).eval()
    for step in range(6):
        images = torch.randn(4, 3, 224, 224).to(DEVICE)
        scores = model(images).softmax(-1)
        values, classes = scores.topk(5)
        for value, label in zip(values.cpu().numpy()[:, 0], classes[:, 0]):
            print(step, float(value), int(label))
        confident = scores[scores.max(1).values > 0.02]
        print(len(confident), model.forward_features(images).abs().max().item())
    model.set_input_size(img_size=(256, 256), window_size=8)
    for _ in range(2):
        out = model(torch.randn(2, 3, 256, 256, device=DEVICE))
        print(out.argmax(-1).tolist())


if __name__ == "__main__":
    main()
