// Validates files against a JSON Schema with ajv in its strict mode.
import assert from "node:assert";
import { readFileSync } from "node:fs";
import Ajv from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { parse } from "yaml";

const [schema, ...files] = process.argv.slice(2);
const ajv = new Ajv({ strict: true, allErrors: true, allowUnionTypes: true });
formats(ajv);
// Words that only the YAML language server knows.
for (const keyword of ["errorMessage", "patternErrorMessage"]) ajv.addKeyword({ keyword });
const validate = ajv.compile(JSON.parse(readFileSync(schema, "utf8")));
for (const file of files) assert(validate(parse(readFileSync(file, "utf8"), { merge: true })), `${file}: ${ajv.errorsText(validate.errors)}`);
console.log("ajv", schema, files.length);
