//! Manifests that are made to end the program: time and memory stay bounded.
#![cfg(target_os = "linux")]

use crate::support::{Program, Workspace};

/// Templates that would take all memory or never end, by each way that the engine has to repeat, walk, pad, or nest.
const HOSTILE: [&str; 52] = [
    "{{ l * 1000000000 }}",
    "{{ (l * 1000000000) | last }}",
    "{{ ([1] * 100000000) | list }}",
    "{{ 100000000 * [1] | sum }}",
    "{{ 5 in [1] * 1000000000 }}",
    "{{ (l * n) | join }}",
    "{{ l * 1000 * 1000 * 1000 }}",
    "{{ (l * 999) | last }} {{ (l * 999) | last }}",
    "{% set k = l * 1000 %}{% set k = k * 1000 %}{{ k | last }}",
    "{% for i in l * 1000 %}{% for j in l * 1000 %}x{% endfor %}{% endfor %}",
    "{{ s * 1000000000 }}",
    "{{ 'x' * n }}",
    "{{ n * 'x' }}",
    "{{ 'x' * 1000 * 1000 * 1000 }}",
    "{% set t = s * 1000 %}{% set t = t * 1000 %}{{ t }}",
    "{{ l | tojson(indent=1000000000) }}",
    "{{ l | tojson(1000000000) }}",
    "{{ s | indent(1000000000, true) }}",
    "{{ s | replace('', s * 1000) | replace('', s * 1000) }}",
    "{{ '%1000000000d' | format(1) }}",
    "{{ '%*d' | format(1000000000, 1) }}",
    "{{ s | center(1000000000) }}",
    "{{ range(100000000) | list }}",
    "{{ range(99999) | list | length }}",
    "{{ range(9999) | map('string') | join(s * 1000) }}",
    "{{ (range(9999) | list + range(9999) | list) | sort | last }}",
    "{% set k = l | chain(l) %}{% set k = k | chain(k) %}{{ k | last }}",
    "{{ l | zip(l, l, l) | list }}",
    "{{ l | batch(1000000000) | list }}",
    "{{ l | slice(1000000000) | list }}",
    "{{ l | groupby('a') }}",
    "{{ m | pprint }}",
    "{{ debug() }}",
    "{{ dict(a=l * 1000) }}",
    "{% set ns = namespace(t='x') %}{% for i in range(99) %}{% set ns.t = ns.t ~ ns.t %}{% endfor %}{{ ns.t }}",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "{% for i in l recursive %}{{ loop(l) }}{% endfor %}",
    "{% set t %}{{ s }}{{ s }}{% endset %}{{ t }}",
    "{% filter upper %}{{ s * 1000 }}{% endfilter %}",
    "{% include 'm.yaml' %}",
    "{% import 'm.yaml' as m %}",
    "{% extends 'm.yaml' %}",
    "{{ s ~ s ~ s ~ s ~ s ~ s ~ s ~ s ~ s ~ s ~ s ~ s ~ s ~ s ~ s ~ s }}",
    "{{ l + l + l + l + l + l + l + l + l + l + l + l + l + l + l + l }}",
    "{% for i in range(9999) %}{% for j in range(9999) %}{{ s }}{% endfor %}{% endfor %}",
    "{% for i in range(9999) %}{{ s * 900 }}{% endfor %}",
    "{{ 2 ** 1000000000 }}",
    "{{ 9 ** 9 ** 9 ** 9 }}",
    "{{ l[::1] * 1000 * 1000 }}",
    "{{ l[0:1000000000] | last * 1000000 }}",
    "{{ (l * 1000) == (l * 1000) }}",
    "{{ (l * 1000) ~ '' }}",
];

#[test]
fn hostile_templates_are_bounded() {
    let vars = "vars: { l: [1, 2, 3], s: xxxxxxxxxx, n: 100000000, m: { a: 1 } }";
    for template in HOSTILE {
        let here = Workspace::new();
        let manifest = serde_json::json!([{ "id": "a", "model": "alpha-2", "prompt": template }]);
        here.write("m.yaml", format!("version: 1\n{vars}\njobs: {manifest}\n"));
        // In kilobytes of address space, and in seconds of processor time.
        let script = "ulimit -v 1000000; ulimit -t 10; exec \"$0\" run m.yaml --plan";
        let ended = Program::script(here.root(), script).ends();
        assert!(matches!(ended.code, Some(0 | 2)), "{template}: {:?} {}", ended.code, ended.stderr);
    }
}

/// Diagnostics cut long text, because a log would keep it.
#[test]
fn diagnostics_are_short_for_long_names() {
    let long = "x".repeat(20_000);
    let job = |number: usize| format!("  - {{ id: {long}{number}, prompt: x, model: no }}\n");
    for (text, most) in [
        (format!("jobs:\n{}", (0..40).map(job).collect::<String>()), 300_000),
        (format!("jobs: [{{ id: a, prompt: x, {long}: 1 }}]\n"), 8_000),
        (format!("jobs: [{{ id: a, prompt: x, model: {long} }}]\n"), 8_000),
        (format!("{long}: 1\njobs: [{{ id: a, prompt: \"{{{{ {long} }}}}\" }}]\n"), 8_000),
    ] {
        let here = Workspace::with_manifest(&format!("version: 1\n{text}"));
        for format in ["text", "json"] {
            let refused = here.shotlist(&["run", "m.yaml", "--plan", "--format", format]).ends_with(2);
            let length = refused.stderr.len() + refused.stdout.len();
            assert!(length < most, "{length} bytes of {}", &text[..40]);
        }
    }
}
