// Bundles charts.js into the page's template, with the licences of all that is in the bundle.
import { readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const template = new URL("../src/limelight/report/template/", import.meta.url);
const read = (path) => readFileSync(new URL(`node_modules/${path}`, import.meta.url), "utf8").trim();
const version = (name) => `${name} ${JSON.parse(read(`${name}/package.json`)).version}`;

// A page is passed on without this folder, so the terms travel inside it.
const banner = `/*!
${version("echarts")}, licensed under https://www.apache.org/licenses/LICENSE-2.0
${read("echarts/NOTICE")}

${version("zrender")}
${read("zrender/LICENSE")}

${version("tslib")}
${read("tslib/LICENSE.txt")}
*/`;

await build({
  entryPoints: [new URL("charts.js", import.meta.url).pathname],
  outfile: new URL("charts.min.js", template).pathname,
  bundle: true,
  minify: true,
  format: "iife",
  globalName: "charts",
  target: "es2020",
  legalComments: "none",
  banner: { js: banner },
});

const parts = ["echarts/LICENSE", "echarts/NOTICE", "zrender/LICENSE", "tslib/LICENSE.txt"];
const licences = parts.map((path) => `==== ${path} ====\n\n${read(path)}\n`);
writeFileSync(new URL("charts.LICENSE.txt", template), licences.join("\n"));
