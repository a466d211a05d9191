"""Loops around pipelines of transformers."""

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, pipeline

classify = pipeline("text-classification", model="distilbert-base-uncased", device=0)
chat = pipeline("text-generation", model="gpt2", device_map="auto")
slow = pipeline("text-classification", device=-1)


def run(texts: list[str]):
    results = []
    for text in texts:
        results.append(classify(text))  # error: TPF946
    return results


def of_rows(rows):
    labels = [classify(row["text"], truncation=True)[0]["label"] for row in rows]  # error: TPF946
    for i, row in enumerate(rows):
        labels.append(chat([{"role": "user", "content": row["question"]}], max_new_tokens=8))  # error: TPF946
    return labels


def label(text: str) -> str:
    return classify(text)[0]["label"]  # error: TPF946


def through_a_function(path: str):
    with open(path) as lines:
        for line in lines:
            print(label(line.strip()))


class Judge:
    def __init__(self):
        self.pipe = pipeline("zero-shot-classification", device="cuda")

    def judge(self, texts):
        for text in texts:
            yield self.pipe(text, candidate_labels=["good", "bad"])  # error: TPF946


def with_a_pipeline(pipe, texts: list[str]):
    return [pipe(text) for text in texts]  # error: TPF946


def main(texts: list[str]):
    return with_a_pipeline(pipeline("summarization", device=0), texts)


# Look-alikes


def at_once(texts: list[str]):
    return list(classify(texts, batch_size=64))


def in_batches(texts: list[str]):
    for i in range(0, len(texts), 64):
        yield from classify(texts[i : i + 64], batch_size=64)
    for batch in texts:
        yield classify(batch)


def as_they_come():
    while True:
        print(classify(input()))


def streamed(texts):
    for result in classify(iter(texts), batch_size=8):
        print(result["label"])


def on_the_cpu(texts: list[str]):
    return [slow(text) for text in texts]


def another_object(texts: list[str], tokenizer: AutoTokenizer):
    return [tokenizer(text) for text in texts]


def one(text: str):
    for _ in range(3):
        print(classify(text))


def prompts_one_by_one(lm, tokenizer, prompts: list[str]):
    answers = []
    for prompt in prompts:
        inputs = tokenizer(prompt, return_tensors="pt").to("cuda")
        answers.append(lm.generate(**inputs, max_new_tokens=64))  # error: TPF946
    return answers


class Judge:
    def __init__(self, name: str):
        self.tokenizer = AutoTokenizer.from_pretrained(name)
        self.model = AutoModelForCausalLM.from_pretrained(name).cuda().eval()

    def chat(self, question: str):
        ids = self.tokenizer.apply_chat_template([{"role": "user", "content": question}], return_tensors="pt")
        return self.model.generate(ids.cuda(), max_new_tokens=64)  # error: TPF946

    def all(self, questions: list[str]):
        return [self.chat(question) for question in questions]


def vectors(encoder: torch.nn.Module, processor, images):
    for image in images:
        yield encoder(**processor(images=image, return_tensors="pt").to("cuda")).pooler_output  # error: TPF946


def prompts_in_batches(lm, tokenizer, prompts: list[str]):
    for i in range(0, len(prompts), 32):
        inputs = tokenizer(prompts[i : i + 32], return_tensors="pt", padding=True).to("cuda")
        yield lm.generate(**inputs, max_new_tokens=64)


def a_conversation(lm, tokenizer, questions: list[str]):
    messages = []
    for question in questions:
        messages.append({"role": "user", "content": question})
        ids = tokenizer.apply_chat_template(messages, return_tensors="pt").to("cuda")
        messages.append({"role": "assistant", "content": tokenizer.decode(lm.generate(ids)[0])})


def one_prompt(lm, tokenizer, prompt: str):
    inputs = tokenizer(prompt, return_tensors="pt").to("cuda")
    return lm.generate(**inputs)


def batches(lm, tokenizer, loader):
    for batch in loader:
        yield lm.generate(**tokenizer(batch, return_tensors="pt", padding=True).to("cuda"))


def program(lm, tokenizer, rows: list[dict[str, str]]):
    for row in rows:
        ids = tokenizer.encode(f"Question: {row['question']}", return_tensors="pt").cuda()
        row["answer"] = lm.generate(ids, max_new_tokens=32)  # error: TPF946
