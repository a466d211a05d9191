/** Drives the real server over standard input and output, with the settings that the extension sends. */

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

import { createMessageConnection, type MessageConnection, StreamMessageReader, StreamMessageWriter } from "vscode-jsonrpc/node";

import { answers, server } from "../src/command";

const SLOW = `import torch

def train(model: torch.nn.Module, loader: torch.utils.data.DataLoader, optimizer):
    total = 0.0
    for images, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
        loss.backward()
        optimizer.step()
        noise = torch.zeros(8).cuda()
        total += loss.item()
    return total, noise
`;
const FIX_ALL = "source.fixAll.perflint";

interface Diagnostic {
  readonly code: string;
  readonly range: { readonly start: { readonly line: number } };
}

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "perflint-server-"));
const file = path.join(folder, "train.py");
const uri = pathToFileURL(file).href;
/** PERFLINT is the command of perflint, such as "python -m perflint". */
const [program, ...leading] = (process.env["PERFLINT"] ?? "perflint").split(" ");
const waiting: ((found: Diagnostic[]) => void)[] = [];
let settings: Record<string, unknown> = {};
let child: ChildProcess;
let connection: MessageConnection;

before(async () => {
  fs.writeFileSync(file, SLOW);
  const { command, args } = server({ path: program ?? "", arguments: ["--no-cache"], folders: [folder] });
  child = spawn(command, [...leading, ...args], { cwd: folder, stdio: ["pipe", "pipe", "inherit"] });
  connection = createMessageConnection(new StreamMessageReader(child.stdout!), new StreamMessageWriter(child.stdin!));
  connection.onNotification("textDocument/publishDiagnostics", (params: { diagnostics: Diagnostic[] }) => {
    waiting.shift()?.(params.diagnostics);
  });
  connection.onRequest("workspace/configuration", (params: { items: { section?: string }[] }) =>
    answers(params.items, params.items.map(() => ({ path: "x", arguments: [], settings }))),
  );
  connection.listen();
  const capabilities = {
    workspace: { configuration: true },
    textDocument: { codeAction: { resolveSupport: { properties: ["edit"] }, dataSupport: true } },
  };
  await connection.sendRequest("initialize", {
    processId: process.pid,
    rootUri: pathToFileURL(folder).href,
    workspaceFolders: [{ uri: pathToFileURL(folder).href, name: "test" }],
    capabilities,
  });
  await connection.sendNotification("initialized", {});
});

after(async () => {
  await connection.sendRequest("shutdown");
  const ended = new Promise((resolve) => child.once("exit", resolve));
  await connection.sendNotification("exit");
  assert.equal(await ended, 0);
  connection.dispose();
  fs.rmSync(folder, { recursive: true });
});

function published(): Promise<Diagnostic[]> {
  return new Promise((resolve) => waiting.push(resolve));
}

function codes(found: Diagnostic[]): string[] {
  return found.map((each) => `${each.code}:${each.range.start.line + 1}`).sort();
}

test("findings of an opened file", { timeout: 60_000 }, async () => {
  const found = published();
  await connection.sendNotification("textDocument/didOpen", {
    textDocument: { uri, languageId: "python", version: 1, text: SLOW },
  });
  const shown = codes(await found);
  assert.ok(shown.includes("TPF101:10") && shown.includes("TPF204:9"), String(shown));
});

test("all safe fixes", { timeout: 60_000 }, async () => {
  const range = { start: { line: 0, character: 0 }, end: { line: 10, character: 0 } };
  const context = { diagnostics: [], only: [FIX_ALL] };
  const found = (await connection.sendRequest("textDocument/codeAction", { textDocument: { uri }, range, context })) as {
    kind: string;
  }[];
  assert.deepEqual(found.map((action) => action.kind), [FIX_ALL]);
  const resolved = (await connection.sendRequest("codeAction/resolve", found[0])) as { edit: unknown };
  assert.match(JSON.stringify(resolved.edit), /device=/);
});

test("an edit, and a change of the settings", { timeout: 60_000 }, async () => {
  let found = published();
  const text = SLOW.replace("loss.item()", "loss.detach()");
  await connection.sendNotification("textDocument/didChange", {
    textDocument: { uri, version: 2 },
    contentChanges: [{ text }],
  });
  assert.ok(!codes(await found).includes("TPF101:10"));
  settings = { select: ["TPF204"] };
  found = published();
  await connection.sendNotification("workspace/didChangeConfiguration", { settings: null });
  assert.deepEqual(codes(await found), ["TPF204:9"]);
});
