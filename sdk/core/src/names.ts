type Letter =
  | "a" | "b" | "c" | "d" | "e" | "f" | "g" | "h" | "i" | "j" | "k" | "l" | "m"
  | "n" | "o" | "p" | "q" | "r" | "s" | "t" | "u" | "v" | "w" | "x" | "y" | "z";
type Digit = "0" | "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9";
type Allowed = Letter | Digit | "-";

/** The first character that no name may have, or `never`. */
type Stranger<Text extends string> = Text extends `${infer First}${infer Rest}`
  ? First extends Allowed
    ? Stranger<Rest>
    : First
  : never;

type Times<Count extends number, Made extends unknown[] = []> = Made["length"] extends Count
  ? Made
  : Times<Count, [...Made, unknown]>;

type Fits<Text extends string, Room extends unknown[]> = Text extends `${infer _}${infer Rest}`
  ? Room extends [unknown, ...infer Less]
    ? Fits<Rest, Less>
    : false
  : true;

/** What is wrong with a name, in words; `never` when nothing is. */
type Fault<Text extends string, Limit extends number> = Text extends ""
  ? "it is empty"
  : [Stranger<Text>] extends [never]
    ? Text extends `-${string}`
      ? "it starts with a hyphen"
      : Text extends `${string}-`
        ? "it ends with a hyphen"
        : Fits<Text, Times<Limit>> extends true
          ? never
          : `it has more than ${Limit} characters`
    : `it contains '${Stranger<Text>}'; use a-z, 0-9 and -`;

/**
 * A name that is safe everywhere: 1 to `Limit` characters of `a-z`, `0-9` and `-`, no hyphen at
 * either end. A literal that is not is replaced by a text that says why, so that the editor
 * shows it. Text that is only known at run time is checked there.
 */
export type NameSafe<Text extends string, Limit extends number = 63> = string extends Text
  ? Text
  : [Fault<Text, Limit>] extends [never]
    ? Text
    : `'${Text}' is not name-safe: ${Fault<Text, Limit>}`;
