import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { test } from "node:test";

import { answers, type Choice, program, report, server, SETTINGS } from "../src/command";

const NONE: Choice = { path: "", arguments: [], folders: [] };

function workspace(...files: string[]): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "perflint-test-"));
  for (const file of files) {
    fs.mkdirSync(path.join(folder, path.dirname(file)), { recursive: true });
    fs.writeFileSync(path.join(folder, file), "");
  }
  return folder;
}

test("the program on the path, if there is no environment", () => {
  assert.equal(program({ ...NONE, folders: [workspace()] }), "perflint");
});

test("the program of an environment in the workspace", () => {
  const folder = workspace(".venv/bin/perflint", "venv/bin/perflint");
  assert.equal(program({ ...NONE, folders: [workspace(), folder] }, "linux"), path.join(folder, ".venv/bin/perflint"));
  const windows = workspace("venv/Scripts/perflint.exe");
  assert.equal(program({ ...NONE, folders: [windows] }, "win32"), path.join(windows, "venv", "Scripts", "perflint.exe"));
});

test("a set path wins, and may name the workspace", () => {
  const folder = workspace(".venv/bin/perflint");
  assert.equal(program({ ...NONE, path: "/opt/perflint", folders: [folder] }), "/opt/perflint");
  assert.equal(program({ ...NONE, path: "${workspaceFolder}/env/perflint", folders: [folder] }), `${folder}/env/perflint`);
});

test("commands", () => {
  const choice = { ...NONE, arguments: ["--no-cache"] };
  assert.deepEqual(server(choice), { command: "perflint", args: ["lsp", "--no-cache"] });
  assert.deepEqual(report(choice, "t.jsonl.gz", "o.html").args, ["report", "t.jsonl.gz", "--output", "o.html"]);
});

test("the server gets its settings only", () => {
  const all = { path: "x", arguments: [], settings: { ignore: ["TPF108"] }, trace: { server: "off" } };
  assert.deepEqual(answers([{ section: "perflint" }, { section: "python" }, {}], [all, 1, undefined]), [
    { ignore: ["TPF108"] },
    1,
    null,
  ]);
  assert.deepEqual(answers([{ section: "perflint" }], [null]), [{}]);
});

test("settings of their own, over which perflint.settings wins", () => {
  const all = { path: "x", profile: "", traces: ["t.jsonl.gz"], inlayHints: true, codeLens: false, settings: {} };
  const sent = { traces: ["t.jsonl.gz"], inlayHints: true, codeLens: false };
  assert.deepEqual(answers([{ section: "perflint" }], [all]), [sent]);
  const more = { ...all, profile: "audit", settings: { inlayHints: false } };
  assert.deepEqual(answers([{ section: "perflint" }], [more]), [{ ...sent, profile: "audit", inlayHints: false }]);
});

test("the manifest and the code name the same commands and settings", () => {
  const root = path.join(__dirname, "..", "..", "..");
  const manifest = JSON.parse(fs.readFileSync(path.join(root, "package.json"), "utf8"));
  const code = fs.readFileSync(path.join(root, "src", "extension.ts"), "utf8");
  const registered = [...code.matchAll(/registerCommand\("([\w.]+)"/g)].map((found) => found[1]);
  const contributed = manifest.contributes.commands.map((each: { command: string }) => each.command);
  assert.deepEqual(registered.sort(), contributed.sort());
  const read = [...code.matchAll(/settings\.get<[^>]+>\("(\w+)"/g)].map((found) => `perflint.${found[1]}`);
  const properties = Object.keys(manifest.contributes.configuration.properties);
  const known = [...read, ...SETTINGS.map((name) => `perflint.${name}`), "perflint.settings", "perflint.trace.server"];
  assert.deepEqual(properties.sort(), known.sort());
  assert.ok(fs.existsSync(path.join(root, manifest.main)));
});
