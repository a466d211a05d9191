/** Decides how the server is started. Imports nothing of VS Code, so that tests run it without. */

import * as fs from "node:fs";
import * as path from "node:path";

export interface Choice {
  /** The setting `perflint.path`; empty if it is not set. */
  readonly path: string;
  /** The setting `perflint.arguments`. */
  readonly arguments: readonly string[];
  /** The folders of the workspace. */
  readonly folders: readonly string[];
}

export interface Command {
  readonly command: string;
  readonly args: string[];
}

const ENVIRONMENTS = [".venv", "venv"];

/** The program: the one that is set, else that of an environment in the workspace, else the one on the path. */
export function program(choice: Choice, platform: NodeJS.Platform = process.platform): string {
  if (choice.path !== "") {
    const first = choice.folders[0] ?? "";
    return choice.path.replaceAll("${workspaceFolder}", first);
  }
  const inside = platform === "win32" ? ["Scripts", "perflint.exe"] : ["bin", "perflint"];
  for (const folder of choice.folders) {
    for (const environment of ENVIRONMENTS) {
      const candidate = path.join(folder, environment, ...inside);
      if (fs.existsSync(candidate)) {
        return candidate;
      }
    }
  }
  return "perflint";
}

/** The command of the server. */
export function server(choice: Choice, platform?: NodeJS.Platform): Command {
  return { command: program(choice, platform), args: ["lsp", ...choice.arguments] };
}

/** The command that writes the report of a trace to a file. */
export function report(choice: Choice, trace: string, output: string): Command {
  return { command: program(choice), args: ["report", trace, "--output", output] };
}

/** Settings of their own that the server reads; the others stand in `perflint.settings`. */
export const SETTINGS = ["profile", "traces", "inlayHints", "codeLens"] as const;

/** The answers to questions of the server for settings. Those in `perflint.settings` win. */
export function answers(
  asked: readonly { readonly section?: string }[],
  given: readonly unknown[],
): unknown[] {
  return asked.map((item, index) => {
    const value = given[index];
    if (item.section !== "perflint") {
      return value ?? null;
    }
    const all = (value ?? {}) as Record<string, unknown>;
    const own = SETTINGS.filter((name) => (all[name] ?? "") !== "").map((name) => [name, all[name]]);
    return { ...Object.fromEntries(own), ...((all["settings"] ?? {}) as object) };
  });
}
