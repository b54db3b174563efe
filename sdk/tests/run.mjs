// Checks the packages' types as they are laid into a project, with the real compiler from npm:
// every name of names.json, every case of cases/, the new project and the examples.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "..", "..");
const tsc = join(here, "node_modules", "typescript", "bin", "tsc");
if (!existsSync(tsc)) {
  execFileSync("npm", ["ci", "--no-audit", "--no-fund"], { cwd: here, stdio: ["ignore", "ignore", "inherit"] });
}

const work = mkdtempSync(join(tmpdir(), "notation-types-"));
process.on("exit", () => rmSync(work, { recursive: true, force: true }));

/** Built with the features of the whole workspace, so that the tests build nothing twice. */
const newProject = (() => {
  const command = ["build", "--workspace", "--locked", "--example", "new_project", "--message-format", "json-render-diagnostics"];
  const built = execFileSync("cargo", command, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"], maxBuffer: 1 << 28 });
  const lines = built.trim().split("\n").map((line) => JSON.parse(line));
  return lines.find((line) => line.target?.name === "new_project" && line.executable).executable;
})();

/** A folder with the types and the tsconfig that `notation init` lays. */
function project(name) {
  const dir = join(work, name);
  execFileSync(newProject, [dir], { cwd: root, stdio: ["ignore", "ignore", "inherit"] });
  return dir;
}

/** Errors of the compiler as `{ file, line, text }`. */
function check(dir) {
  const done = spawnSync(process.execPath, [tsc, "--noEmit", "--pretty", "false", "-p", dir], { cwd: dir, encoding: "utf8" });
  const errors = [];
  for (const line of done.stdout.split("\n")) {
    const found = /^(.+?)\((\d+),\d+\): error TS\d+: (.*)$/.exec(line);
    if (found) errors.push({ file: relative(dir, join(dir, found[1])), line: Number(found[2]), text: found[3] });
    else if (line.startsWith(" ") && errors.length > 0) errors[errors.length - 1].text += `\n${line}`;
    else if (line.trim() !== "") errors.push({ file: "", line: 0, text: line });
  }
  if (done.status !== 0 && errors.length === 0) errors.push({ file: "", line: 0, text: done.stderr });
  return errors;
}

const failures = [];
let checks = 0;

/** Every expected error is there, and no other. */
function expect(dir, wanted) {
  const errors = check(dir);
  for (const want of wanted) {
    checks += 1;
    const at = errors.findIndex((error) => error.file === want.file && error.line === want.line);
    if (at < 0) failures.push(`${want.file}:${want.line}: no error, wanted: ${want.says}`);
    else if (!errors[at].text.includes(want.says)) {
      failures.push(`${want.file}:${want.line}: wanted: ${want.says}\n  got: ${errors[at].text}`);
      errors.splice(at, 1);
    } else errors.splice(at, 1);
  }
  checks += 1;
  for (const error of errors) failures.push(`${error.file}:${error.line}: ${error.text}`);
}

// A new project has no errors.
expect(project("new"), []);

// Names: one file each, the same list that the Rust test reads.
{
  const dir = project("names");
  const wanted = [];
  JSON.parse(readFileSync(join(here, "names.json"), "utf8")).forEach((each, index) => {
    const file = `infra/name-${index}.ts`;
    const app = each.kind === "app" ? each.name : "app";
    const entry = each.kind === "entry" ? each.name : "entry";
    const stage = each.kind === "stage" ? each.name : "stage";
    const lines = [
      'import { defineConfig } from "@notation/core";',
      "export default defineConfig({",
      `  app: ${JSON.stringify(app)},`,
      "  entries: {",
      `    ${JSON.stringify(entry)}: "infra/app.ts",`,
      "  },",
      `  defaultStage: ${JSON.stringify(stage)},`,
      "});",
    ];
    writeFileSync(join(dir, file), `${lines.join("\n")}\n`);
    if (!each.good) {
      const line = { app: 3, entry: 5, stage: 7 }[each.kind];
      wanted.push({ file, line, says: `'${each.name}' is not name-safe: ${each.says}` });
    }
  });
  expect(dir, wanted);
}

// Cases: `// error: text` stands above the line that must be refused.
{
  const dir = project("cases");
  const wanted = [];
  for (const name of readdirSync(join(here, "cases"))) {
    const text = readFileSync(join(here, "cases", name), "utf8");
    const file = `infra/case-${name}`;
    writeFileSync(join(dir, file), text);
    text.split("\n").forEach((line, index) => {
      const found = /^\s*\/\/ error: (.*)$/.exec(line);
      if (found) wanted.push({ file, line: index + 2, says: found[1] });
    });
  }
  expect(dir, wanted);
}

// Examples: as they are, with the types laid.
const examples = join(root, "examples");
for (const name of existsSync(examples) ? readdirSync(examples) : []) {
  const from = join(examples, name);
  if (!existsSync(join(from, "notation.config.ts"))) continue;
  const dir = project(`example-${name}`);
  for (const own of ["infra", "src", "notation.config.ts"]) rmSync(join(dir, own), { recursive: true });
  mkdirSync(dir, { recursive: true });
  cpSync(from, dir, { recursive: true, filter: (path) => !path.includes(".notation") && !path.includes("node_modules") });
  expect(dir, []);
}

if (failures.length > 0) {
  console.error(failures.join("\n"));
  console.error(`${failures.length} of the types' checks failed`);
  process.exit(1);
}
console.log(`types: ${checks} checks`);
