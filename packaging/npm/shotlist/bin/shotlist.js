#!/usr/bin/env node
// Starts the program for this machine, and ends as it ends. Nothing is fetched and nothing is built: the program lies in the package of its
// platform, which npm has chosen by `os`, `cpu` and `libc`.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const platform = `${process.platform}-${process.arch}`;
const file = process.platform === "win32" ? "shotlist.exe" : "shotlist";

function program() {
  try {
    return require.resolve(`@shotlist/${platform}/${file}`);
  } catch {
    console.error(
      `error: there is no shotlist for ${platform} here\n` +
        `  help: install @shotlist/${platform} beside it, which npm does by itself without --omit=optional, or name both files of a ` +
        "release; on Linux it needs glibc\n" +
        "  note: nothing was submitted; nothing was spent",
    );
    process.exit(2);
  }
}

const child = spawn(program(), process.argv.slice(2), { stdio: "inherit" });

// A terminal tells the program itself, too: shotlist takes signals that come together for one.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));

child.on("error", (error) => {
  console.error(`error: shotlist can't be started: ${error.message}\n  note: nothing was submitted; nothing was spent`);
  process.exit(2);
});
child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
