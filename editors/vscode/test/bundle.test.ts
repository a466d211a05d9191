/** The built extension loads, with a stand-in for the module that only VS Code has. */

import assert from "node:assert/strict";
import Module from "node:module";
import * as path from "node:path";
import { test } from "node:test";

/** An object that has all properties: each is a class that has all properties, too. */
function anything(): unknown {
  const base = class {};
  return new Proxy(base, {
    get: (target, name) => (name in target || typeof name === "symbol" ? Reflect.get(target, name) : anything()),
  });
}

test("the bundle loads, and needs no module but that of VS Code", () => {
  const asked: string[] = [];
  const loader = Module as unknown as { _load(name: string, ...rest: unknown[]): unknown };
  const load = loader._load;
  loader._load = (name, ...rest) => {
    asked.push(name);
    return name === "vscode" ? anything() : load(name, ...rest);
  };
  try {
    const extension = require(path.join(__dirname, "..", "..", "extension.js"));
    assert.equal(typeof extension.activate, "function");
    assert.equal(typeof extension.deactivate, "function");
  } finally {
    loader._load = load;
  }
  const builtin = new Set(Module.builtinModules);
  const outside = asked.slice(1).filter((name) => name !== "vscode" && !builtin.has(name.replace("node:", "")));
  assert.deepEqual(outside, []);
});
