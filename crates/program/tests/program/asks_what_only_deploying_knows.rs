//! A program that asks what a reference is: refused at the words it asks about, whatever the
//! question. What is known stays usable.

use notation_model::Expr;
use notation_program::{Problem, codes};

use crate::project::{Project, render};

const BEFORE: &str = r#"import { secret } from "@notation/core";
import { Thing, Worker } from "@notation/sim";
const a = new Worker({ id: "a" });
const t = new Thing({ id: "t" });
const out: any[] = [];
const maybe: any = undefined;
function use(...values: any[]) { out.push(...values); }
"#;

fn refusal(statement: &str) -> Problem {
    let mut problems = Project::with_entry(&format!("{BEFORE}{statement}\n"))
        .evaluate()
        .err()
        .unwrap_or_else(|| panic!("{statement} is taken"));
    assert_eq!(problems.len(), 1, "{statement}: {}", render(&problems));
    problems.remove(0)
}

/// The words that a problem underlines.
fn words(problem: &Problem) -> &str {
    let place = problem.place.as_ref().unwrap();
    &place.text()[place.offset()..place.offset() + place.length]
}

#[test]
fn every_question_is_refused_at_the_words_it_asks_about() {
    let cases = [
        // Conditions.
        (
            "if (a.arn) use(1);",
            "a.arn",
            "nothing can be decided by it",
        ),
        (
            "if (!a.arn) use(1);",
            "a.arn",
            "nothing can be decided by it",
        ),
        (
            "if (true && (t.value.deep as boolean)) use(1);",
            "t.value.deep",
            "nothing can be decided by it",
        ),
        (
            "if (maybe) use(1); else if (secret('KEY')) use(2);",
            "secret('KEY')",
            "nothing can be decided by it",
        ),
        (
            "use(a.arn ? 1 : 2);",
            "a.arn",
            "nothing can be decided by it",
        ),
        ("use(a.arn && 1);", "a.arn", "nothing can be decided by it"),
        (
            "use((maybe ? 1 : a.arn) ? 1 : 2);",
            "a.arn",
            "nothing can be decided by it",
        ),
        (
            "while (t.value) use(1);",
            "t.value",
            "nothing can be decided by it",
        ),
        (
            "do { use(1); } while (a.arn);",
            "a.arn",
            "nothing can be decided by it",
        ),
        (
            "for (; a.arn; ) use(1);",
            "a.arn",
            "nothing can be decided by it",
        ),
        (
            "if (`x${a.arn}`) use(1);",
            "`x${a.arn}`",
            "nothing can be decided by it",
        ),
        // Fallbacks.
        ("use(a.arn || 'none');", "a.arn", "`||` cannot tell"),
        ("use(a.arn ?? 'none');", "a.arn", "`??` cannot tell"),
        (
            "let url: any = a.arn; url ||= 'none';",
            "url",
            "`||` cannot tell",
        ),
        (
            "const o: any = { url: a.arn }; o.url ??= 'none';",
            "o.url",
            "`??` cannot tell",
        ),
        // Comparisons.
        (
            "use(a.region === 'north');",
            "a.region",
            "it cannot be compared",
        ),
        (
            "use('north' !== a.region);",
            "a.region",
            "it cannot be compared",
        ),
        (
            "use(a.region == null);",
            "a.region",
            "it cannot be compared",
        ),
        ("use(a.region > 'm');", "a.region", "it cannot be compared"),
        (
            "use(`${a.region}x` === 'north');",
            "`${a.region}x`",
            "it cannot be compared",
        ),
        (
            "switch (a.region) { case 'x': use(1); }",
            "a.region",
            "`switch` cannot choose",
        ),
        (
            "switch ('x') { case a.region: use(1); }",
            "a.region",
            "`switch` cannot choose",
        ),
        (
            "use(typeof a.region === 'string');",
            "a.region",
            "its type cannot be asked",
        ),
        (
            "const r: any = a.region; use(typeof r);",
            "r",
            "its type cannot be asked",
        ),
        (
            "use((a.region as any) instanceof Map);",
            "a.region",
            "its class cannot be asked",
        ),
        (
            "use('x' in (t.value as any));",
            "t.value",
            "its members cannot be listed",
        ),
        (
            "use(a.region in {});",
            "a.region",
            "nothing can be looked up by it",
        ),
        (
            "use(({ north: 1 } as any)[a.region]);",
            "a.region",
            "nothing can be looked up by it",
        ),
        (
            "use(Object.is(a.region, 'x'));",
            "a.region",
            "`is` cannot tell",
        ),
        (
            "use(Array.isArray(t.value));",
            "t.value",
            "`isArray` cannot tell",
        ),
        // Conversions.
        ("use(Boolean(a.arn));", "a.arn", "`Boolean` cannot tell"),
        ("use(Number(t.value));", "t.value", "`Number` cannot tell"),
        (
            "use(parseInt(`${t.value}`, 10));",
            "`${t.value}`",
            "`parseInt` cannot tell",
        ),
        (
            "use(Number.isInteger(t.value));",
            "t.value",
            "`isInteger` cannot tell",
        ),
        (
            "use(a.arn + '/x');",
            "a.arn",
            "it cannot be joined with `+`",
        ),
        (
            "let s: any = 'x'; s += a.arn;",
            "a.arn",
            "it cannot be joined with `+`",
        ),
        (
            "use((t.value as any) * 2);",
            "t.value",
            "it cannot be calculated with",
        ),
        (
            "use(-(t.value as any));",
            "t.value",
            "it cannot be calculated with",
        ),
        // Lists.
        (
            "for (const item of t.value) use(item);",
            "t.value",
            "its members cannot be listed",
        ),
        (
            "for (const key in t.value) use(key);",
            "t.value",
            "its members cannot be listed",
        ),
        (
            "use({ ...t.value });",
            "t.value",
            "its members cannot be listed",
        ),
        (
            "use(...t.value);",
            "t.value",
            "its members cannot be listed",
        ),
        (
            "use(['x'].includes(a.region));",
            "a.region",
            "`includes` cannot look for it",
        ),
        (
            "use([a.region].includes('x'));",
            "[a.region]",
            "`includes` cannot work on it",
        ),
        (
            "use([a.region, a.arn].indexOf(maybe));",
            "[a.region, a.arn]",
            "`indexOf` cannot work on it",
        ),
        // Texts.
        (
            "const s = `x${a.arn}`; use(s.length);",
            "s",
            "its length cannot be asked",
        ),
        (
            "const s = `x${a.arn}`; use(s.startsWith('http'));",
            "s",
            "`startsWith` cannot work on it",
        ),
        (
            "const s = `x${a.arn}`; use(s.toUpperCase());",
            "s",
            "`toUpperCase` cannot work on it",
        ),
        (
            "const s = `${a.arn} `; use(s.trim());",
            "s",
            "`trim` cannot work on it",
        ),
        (
            "use('abc'.startsWith(`${a.arn}`));",
            "`${a.arn}`",
            "`startsWith` cannot look for it",
        ),
    ];
    for (statement, wanted, says) in cases {
        let problem = refusal(statement);
        assert_eq!(
            problem.code,
            codes::REFERENCE_AS_VALUE,
            "{statement}: {problem}"
        );
        assert!(problem.message.contains(says), "{statement}: {problem}");
        let found = words(&problem);
        assert_eq!(found, wanted, "{statement}: {problem}");
        let line = problem.place.as_ref().unwrap().origin.line;
        assert_eq!(line, 8, "{statement}");
        assert!(problem.help.is_some(), "{statement}");
    }
}

#[test]
fn what_looks_for_its_argument_is_refused_on_its_line() {
    let cases = [
        ("use(/^eu/.test(a.region));", "`test` cannot look for it"),
        ("use(/x/.test(`x${a.arn}`));", "`test` cannot look for it"),
        (
            "use(new Set(['x']).has(`${a.arn}`));",
            "`has` cannot look for it",
        ),
        (
            "use(new Map([['x', 1]]).has(`${a.region}`));",
            "`has` cannot look for it",
        ),
    ];
    for (statement, says) in cases {
        let problem = refusal(statement);
        assert_eq!(problem.code, codes::REFERENCE_AS_VALUE, "{problem}");
        assert!(problem.message.contains(says), "{statement}: {problem}");
        let line = problem.place.as_ref().unwrap().origin.line;
        assert_eq!(line, 8, "{statement}");
    }
    let fine = Project::with_entry(&format!(
        "{BEFORE}use(/^a/.test('abc') && new Set(['x']).has('x') && new Map([[1, 2]]).has(1) && new Set([a.arn]).has(a.arn));\n"
    ));
    assert!(fine.evaluate().is_ok());
}

#[test]
fn a_question_far_away_names_its_file_and_its_callers() {
    let project = Project::with_entry(
        "import { Worker } from \"@notation/sim\";\nimport { label } from \"./label\";\nconst a = new Worker({ id: \"a\" });\nexport const x = label(a.arn);\n",
    );
    project.write(
        "infra/label.ts",
        "type Text = string;\n\nexport const label = (text: Text): Text =>\n  text ? `<${text}>` : \"\";\n",
    );
    let problems = project.evaluate().unwrap_err();
    let problem = &problems[0];
    assert_eq!(
        problem.place.as_ref().unwrap().origin.to_string(),
        "infra/label.ts:4:3"
    );
    assert_eq!(
        problem.related[0].place.origin.to_string(),
        "infra/app.ts:4:18"
    );
}

#[test]
fn what_is_known_may_be_asked() {
    let entry = format!(
        "{BEFORE}{}",
        r#"
const log: any[] = [];
enum Size { Small = 1 << 1, Large = Small * 2, Name = "x".length }
const given = (url?: string) => (url === undefined ? "none" : `at ${url}`);
log.push(given(a.arn) === undefined, given(), typeof a.arn === "undefined", undefined !== a.arn);
if (a) log.push("a resource is there");
log.push(maybe ?? "fallback", maybe || "other", maybe?.x === void 0);
log.push(typeof notThere, typeof notThere === "undefined", typeof use);
log.push([a, t].includes(a), [a].indexOf(a), a === a);
log.push(`  a ${a.Name} b  `.trim().length === undefined ? 1 : 2);
"#
    );
    // The last line asks for the length of a text with a reference: that is refused, and nothing
    // before it.
    let problems = Project::with_entry(&entry).evaluate().unwrap_err();
    assert_eq!(problems.len(), 1, "{}", render(&problems));
    assert!(
        problems[0].message.contains("its length"),
        "{}",
        problems[0]
    );

    let fine = entry.replace(".trim().length === undefined ? 1 : 2);", ".trim());")
        + r#"
let n = 0;
for (let i = 0; i < 3; i += 1) n += i;
outer: for (const x of [1, 2]) { for (;;) { n += x; continue outer; } }
while (n < 10) n++;
do n -= 1; while (n > 5);
for (const k in { a: 1 }) n += k.length;
const text = ["b", "a"].sort().map((x) => x.toUpperCase()).join("-").replace("A", () => "z");
let late: any; late ??= 5; late ||= 6; late &&= 7; late += 1; late **= 2;
const label = { north: "N" }["north"];
switch (label) { case "N": n += 100; break; default: n += 1000; }
export const all = { log, n, text, late, label, sizes: [Size.Small, Size.Large, Size.Name], spread: [...[1], ..."ab"], joined: "x-" + `${a.Name}` };
"#;
    let done = Project::with_entry(&fine)
        .evaluate()
        .unwrap_or_else(|problems| panic!("{}", render(&problems)));
    let all = &done.graph.exports["all"];
    let Expr::Map(members) = all else {
        panic!("{all:?}")
    };
    let known =
        ["n", "text", "late", "label", "sizes", "spread"].map(|name| match &members[name] {
            Expr::Known(value) => value.to_display_json().to_string(),
            other => panic!("{name}: {other:?}"),
        });
    assert_eq!(
        known,
        [
            "106",
            "\"z-B\"",
            "64",
            "\"N\"",
            "[2,4,1]",
            "[1,\"a\",\"b\"]"
        ]
    );
    let Expr::List(log) = &members["log"] else {
        panic!("{members:?}")
    };
    let log: Vec<String> = log
        .iter()
        .map(|item| match item {
            Expr::Known(value) => value.to_display_json().to_string(),
            Expr::Join(parts) => format!("{} parts", parts.len()),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(
        log.join(" "),
        "false \"none\" false true \"a resource is there\" \"fallback\" \"other\" true \"undefined\" true \"function\" true 0 true 3 parts"
    );
}

#[test]
fn packages_hand_values_on_as_they_are() {
    let project = Project::with_entry(
        "import { merge } from \"merging\";\nimport { Thing, Worker } from \"@notation/sim\";\nconst a = new Worker({ id: \"a\" });\nnew Thing({ id: \"t\", config: { value: merge({ arn: a.arn }) } });\n",
    );
    project.write(
        "node_modules/merging/package.json",
        "{ \"name\": \"merging\", \"version\": \"1.0.0\", \"main\": \"index.js\" }",
    );
    project.write(
        "node_modules/merging/index.js",
        "exports.merge = (value) => Object.fromEntries(Object.entries(value).filter(([, v]) => v && v !== null));\n",
    );
    let done = project
        .evaluate()
        .unwrap_or_else(|problems| panic!("{}", render(&problems)));
    assert_eq!(done.graph.resources.len(), 2);
}
