/** The extension: starts `perflint lsp` and offers commands. All findings and fixes come from the server. */

import { execFile } from "node:child_process";
import * as fs from "node:fs/promises";
import * as os from "node:os";
import * as path from "node:path";
import { promisify } from "node:util";

import * as vscode from "vscode";
import { LanguageClient, type LanguageClientOptions } from "vscode-languageclient/node";

import { answers, type Choice, report, server } from "./command";

const NAME = "perflint";
const FIX_ALL = "source.fixAll.perflint";
const TRACES = "**/*.jsonl.gz";
const RESTARTING = ["perflint.path", "perflint.arguments"];

const run = promisify(execFile);
let client: LanguageClient | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const log = vscode.window.createOutputChannel(NAME, { log: true });
  context.subscriptions.push(
    log,
    vscode.commands.registerCommand("perflint.fixAll", fixAll),
    vscode.commands.registerCommand("perflint.restart", () => restart(log)),
    vscode.commands.registerCommand("perflint.showReport", showReport),
    vscode.commands.registerCommand("perflint.showLog", () => log.show()),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (RESTARTING.some((name) => event.affectsConfiguration(name))) {
        await restart(log);
      }
    }),
  );
  await start(log);
}

export async function deactivate(): Promise<void> {
  await client?.stop();
  client = undefined;
}

function choice(): Choice {
  const settings = vscode.workspace.getConfiguration(NAME);
  return {
    path: settings.get<string>("path", ""),
    arguments: settings.get<string[]>("arguments", []),
    folders: (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath),
  };
}

async function start(log: vscode.LogOutputChannel): Promise<void> {
  const command = server(choice());
  const options: LanguageClientOptions = {
    documentSelector: ["file", "vscode-notebook-cell"].map((scheme) => ({ language: "python", scheme })),
    outputChannel: log,
    synchronize: { configurationSection: NAME },
    middleware: {
      workspace: {
        configuration: async (params, token, next) => {
          const given = await next(params, token);
          return Array.isArray(given) ? answers(params.items, given) : given;
        },
        didChangeConfiguration: async () => {
          // The server asks for the settings that it reads.
          await client?.sendNotification("workspace/didChangeConfiguration", { settings: null });
        },
      },
    },
  };
  client = new LanguageClient(NAME, NAME, command, options);
  try {
    await client.start();
  } catch (error) {
    log.error(`${command.command} ${command.args.join(" ")}: ${String(error)}`);
    const open = "Open settings";
    const help = `\`${command.command} lsp\` does not start. Install it with pip install "torch-perflint[lsp]", or set perflint.path.`;
    void vscode.window.showErrorMessage(help, open).then(async (chosen) => {
      if (chosen === open) {
        await vscode.commands.executeCommand("workbench.action.openSettings", "perflint.path");
      }
    });
  }
}

async function restart(log: vscode.LogOutputChannel): Promise<void> {
  // A server that never started cannot be stopped.
  await client?.stop().catch((error: unknown) => log.error(String(error)));
  await start(log);
}

async function fixAll(): Promise<void> {
  await vscode.commands.executeCommand("editor.action.sourceAction", { kind: FIX_ALL, apply: "first" });
}

/** Shows the page that `perflint report` writes for a trace of the workspace. The page has no scripts. */
async function showReport(): Promise<void> {
  const traces = await vscode.workspace.findFiles(TRACES, "**/{node_modules,.venv,venv}/**", 50);
  const items = traces.map((uri) => ({ label: vscode.workspace.asRelativePath(uri), uri }));
  const picked = items.length === 1 ? items[0] : await vscode.window.showQuickPick(items, { title: "Trace" });
  if (picked === undefined) {
    if (items.length === 0) {
      void vscode.window.showInformationMessage("There is no trace here: `perflint trace SCRIPT` records one.");
    }
    return;
  }
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), "perflint-"));
  try {
    const output = path.join(folder, "report.html");
    const command = report(choice(), picked.uri.fsPath, output);
    const cwd = vscode.workspace.getWorkspaceFolder(picked.uri)?.uri.fsPath;
    await run(command.command, command.args, { cwd });
    const panel = vscode.window.createWebviewPanel("perflint.report", picked.label, vscode.ViewColumn.Active, {
      enableScripts: false,
    });
    panel.webview.html = await fs.readFile(output, "utf8");
  } catch (error) {
    void vscode.window.showErrorMessage(`perflint report: ${String(error)}`);
  } finally {
    await fs.rm(folder, { recursive: true, force: true });
  }
}
