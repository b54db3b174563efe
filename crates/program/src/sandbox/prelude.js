// The world of a program: what it may declare, and what it must not ask for. Runs before the
// program, in strict mode, once. Everything that leaves is plain data; `finish` hands it over.
(() => {
  "use strict";
  const problems = [];
  const resources = [];
  const said = [];
  const secrets = [];
  const rejections = new Map();

  Error.stackTraceLimit = 40;
  const here = () => new Error().stack;

  class Refusal extends Error {
    constructor(code, message, help, from, to) {
      super(message);
      this.code = code;
      this.help = help;
      // The words it is about, in bytes of the file of the innermost frame.
      this.from = from;
      this.to = to;
    }
  }
  const refuse = (code, message, help) => {
    throw new Refusal(code, message, help);
  };
  const complain = (code, message, help, path) => {
    problems.push({ code, message, help, path: path ?? [], stack: here() });
  };

  // References. A text cannot hold one, so it holds a marker of noncharacters that is taken
  // apart again where the text lands.
  const OPEN = "\uFDD0";
  const CLOSE = "\uFDD1";
  const MARKER = /\uFDD0(\d+)\uFDD1/;
  const marked = [];
  const markers = new Map();
  const references = new WeakMap();
  const declared = new WeakMap();

  const marker = (reference) => {
    let index = markers.get(reference);
    if (index === undefined) {
      index = marked.push(reference) - 1;
      markers.set(reference, index);
    }
    return `${OPEN}${index}${CLOSE}`;
  };
  const isIndex = (key) => /^(0|[1-9]\d{0,8})$/.test(key);
  const label = (resource) => resource.id ?? `${resource.type} #${resource.index + 1}`;
  const spell = (reference) => {
    if (reference.secret !== undefined) return `secret(${JSON.stringify(reference.secret)})`;
    return reference.path.reduce(
      (text, step) => text + (typeof step === "number" ? `[${step}]` : `.${step}`),
      label(reference.resource),
    );
  };
  const plain = (text) =>
    text.split(MARKER).map((part, at) => (at % 2 ? `\${${spell(marked[part])}}` : part)).join("");

  const unknownYet = (reference, use, help) =>
    refuse(
      "program::reference_as_value",
      `${spell(reference)} is not known while the program runs, so ${use}`,
      help ??
        "use it in a template string, `${...}`, or hand it on as it is; only deploying can tell its value",
    );

  const referenceTo = (reference) => {
    const children = new Map();
    const name = () => spell(reference);
    const inspect = () =>
      unknownYet(reference, "its members cannot be listed", `read one by its name, \`${name()}.member\`, or hand on the whole`);
    const proxy = new Proxy(() => {}, {
      get(_, key) {
        if (typeof key === "symbol") {
          if (key === Symbol.toPrimitive) {
            return (hint) => {
              if (hint === "string") return marker(reference);
              if (hint === "number") {
                return unknownYet(reference, "it cannot be used as a number or compared");
              }
              return unknownYet(
                reference,
                "it cannot be joined with `+` or compared with `==`",
                `write a template string, \`\${...}\`, in place of \`+\``,
              );
            };
          }
          if (key === Symbol.iterator || key === Symbol.asyncIterator) {
            return () => inspect();
          }
          return undefined;
        }
        switch (key) {
          case "then":
            return undefined;
          case "toString":
            return () => marker(reference);
          case "valueOf":
            return () => unknownYet(reference, "it has no plain value");
          case "toJSON":
            return () =>
              unknownYet(
                reference,
                "JSON.stringify cannot write it",
                "give the object itself to the field, or put the reference into a template string first, `${...}`",
              );
        }
        if (reference.secret !== undefined) {
          return refuse(
            "program::reference_as_value",
            `${name()} cannot be looked into`,
            "a secret is one text that only deploying knows; use it as a whole",
          );
        }
        let child = children.get(key);
        if (child === undefined) {
          child = referenceTo({
            resource: reference.resource,
            self: reference.self,
            path: [...reference.path, isIndex(key) ? Number(key) : key],
          });
          children.set(key, child);
        }
        return child;
      },
      apply() {
        try {
          return unknownYet(
            reference,
            "it cannot be called",
            "methods of texts and lists need the value itself, which only deploying can tell; hand the reference on as it is",
          );
        } catch (refusal) {
          // Whether the type has such a property at all is judged where types are known.
          const { resource, path } = reference;
          if (resource !== undefined) {
            refusal.called = JSON.stringify({
              label: label(resource),
              type: resource.type,
              property: `${path[0]}`,
              inner: path.length > 1,
              methods: methodsOf(reference.self),
            });
          }
          throw refusal;
        }
      },
      has: () => inspect(),
      ownKeys: () => inspect(),
      getOwnPropertyDescriptor: () => inspect(),
      set: () => unknownYet(reference, "it cannot be assigned to"),
      defineProperty: () => unknownYet(reference, "it cannot be assigned to"),
      deleteProperty: () => unknownYet(reference, "nothing can be deleted from it"),
    });
    references.set(proxy, reference);
    return proxy;
  };

  // What only deploying can tell cannot be asked while the program runs. The bundler lets every
  // question of the project's own files come by here (`questions.rs`).
  const isUnknownText = (value) => typeof value === "string" && value.includes(OPEN);
  const isUnknown = (value) => references.has(value) || isUnknownText(value);
  const GIVEN = "whether one was given at all can be asked: compare with `undefined`";
  const DECIDE = `decide by what the program itself knows, or let the code that runs decide; ${GIVEN}`;
  const LATER = "let the code that runs do it, or work on the known parts before they are joined with the reference";
  const SUM = "write a template string, `${...}`, in place of `+`";
  const QUESTIONS = {
    decide: [isUnknown, "nothing can be decided by it", DECIDE],
    "||": [isUnknown, "`||` cannot tell whether it is empty", DECIDE],
    "??": [isUnknown, "`??` cannot tell whether it is there", DECIDE],
    equal: [isUnknown, "it cannot be compared", DECIDE],
    order: [isUnknown, "it cannot be compared", DECIDE],
    switch: [isUnknown, "`switch` cannot choose by it", DECIDE],
    typeof: [(value) => references.has(value), "its type cannot be asked", DECIDE],
    instanceof: [(value) => references.has(value), "its class cannot be asked", DECIDE],
    "+": [(value) => references.has(value), "it cannot be joined with `+`", SUM],
    number: [isUnknown, "it cannot be calculated with", "let the code that runs do it"],
    key: [
      isUnknown,
      "nothing can be looked up by it",
      "look up by a name that the program itself knows",
    ],
    list: [
      isUnknown,
      "its members cannot be listed",
      "read one by its name, `.member`, or hand on the whole",
    ],
    call: [isUnknown, (name) => `\`${name}\` cannot tell what it is`, DECIDE],
    search: [isUnknown, (name) => `\`${name}\` cannot look for it`, LATER],
    text: [
      (value, name) => {
        if (Array.isArray(value)) return ["includes", "indexOf", "lastIndexOf"].includes(name) && value.some(isUnknown);
        if (!isUnknownText(value)) return false;
        // What is taken from the ends is known when the ends are.
        if (name === "trim") return isUnknownEnd(value.trimStart(), 0) || isUnknownEnd(value.trimEnd(), -1);
        if (name === "trimStart") return isUnknownEnd(value.trimStart(), 0);
        if (name === "trimEnd") return isUnknownEnd(value.trimEnd(), -1);
        return true;
      },
      (name) => (name === "length" ? "its length cannot be asked" : `\`${name}\` cannot work on it`),
      LATER,
    ],
  };
  const isUnknownEnd = (text, at) => [OPEN, CLOSE].includes(text.at(at));
  const subject = (value) => {
    const reference = references.get(value);
    if (reference !== undefined) return spell(reference);
    if (Array.isArray(value)) return `a list with ${subject(value.find(isUnknown))} in it`;
    return `the text \`${plain(value)}\``;
  };
  const ask = (question, value, from, to, name) => {
    if (typeof value === "number" || typeof value === "boolean") return value;
    const [unknown, use, help] = QUESTIONS[question];
    if (!unknown(value, name)) return value;
    const why = typeof use === "string" ? use : use(name);
    throw new Refusal(
      "program::reference_as_value",
      `${subject(value)} is not known while the program runs, so ${why}`,
      help,
      from,
      to,
    );
  };

  // These look for their argument in what the program knows, whatever file calls them. Whether a
  // collection has a reference itself is known; whether it has its value, or a text with it, is not.
  const watchSearch = (prototype, name, isRefused) => {
    const search = prototype[name];
    const { [name]: watched } = {
      [name](value) {
        if (isRefused(value)) ask("search", value, undefined, undefined, name);
        return Reflect.apply(search, this, [value]);
      },
    };
    Object.defineProperty(prototype, name, { ...Object.getOwnPropertyDescriptor(prototype, name), value: watched });
  };
  watchSearch(RegExp.prototype, "test", isUnknown);
  watchSearch(Set.prototype, "has", isUnknownText);
  watchSearch(Map.prototype, "has", isUnknownText);

  // Snapshots: values as data, at the moment they are given. Tags: ["l", items], ["m", members],
  // ["o", resource, path], ["s", secret], ["j", parts].
  const expression = (reference) =>
    reference.secret !== undefined
      ? ["s", reference.secret]
      : ["o", reference.resource.index, reference.path];

  const text = (value, path) => {
    if (!value.includes(OPEN) && !value.includes(CLOSE)) {
      if (value.includes("%EF%B7%90")) {
        complain(
          "program::reference_in_pieces",
          "a reference was encoded as if it were a plain text",
          "encodeURIComponent and the like cannot work on a value that only deploying knows",
          path,
        );
      }
      return value;
    }
    const parts = [];
    value.split(MARKER).forEach((part, at) => {
      if (at % 2) {
        parts.push(expression(marked[part]));
      } else if (part !== "") {
        if (part.includes(OPEN) || part.includes(CLOSE)) {
          complain(
            "program::reference_in_pieces",
            "a text with a reference in it was cut inside the reference",
            "cut the known parts before they are joined with the reference",
            path,
          );
        }
        parts.push(part);
      }
    });
    return ["j", parts];
  };

  // In the place of a value that was complained about: nothing more is said of it.
  const REFUSED = ["r", null];

  const notData = (what, help, path) => {
    complain("program::not_data", `${what} is not data`, help, path);
    return REFUSED;
  };

  const snapshot = (value, path, above) => {
    switch (typeof value) {
      case "string":
        return text(value, path);
      case "boolean":
        return value;
      case "number":
        if (Number.isFinite(value)) return value === 0 ? 0 : value;
        return notData(`${value}`, "give a finite number, or leave the field out", path);
      case "bigint":
        return notData("a BigInt", "give a number, or its text: `String(...)`", path);
      case "symbol":
        return notData("a symbol", "give a text", path);
      case "undefined":
        return notData("undefined", "leave the field out, or give null where the type takes it", path);
      default:
        break;
    }
    if (value === null) return null;
    const reference = references.get(value);
    if (reference !== undefined) return expression(reference);
    const resource = declared.get(value);
    if (resource !== undefined) {
      complain(
        "program::resource_as_value",
        `${label(resource)} is a resource, not a value`,
        "give one of its properties, for example its name",
        path,
      );
      return REFUSED;
    }
    if (typeof value === "function") {
      return notData(
        "a function",
        "code that runs later belongs in a module of its own, given by its path",
        path,
      );
    }
    if (above.includes(value)) {
      return notData("an object that contains itself", "give a tree of plain objects and lists", path);
    }
    if (above.length >= 32) {
      return notData("a value nested more than 32 deep", "flatten it", path);
    }
    const deeper = [...above, value];
    if (Array.isArray(value)) {
      return ["l", Array.from(value, (item, at) => snapshot(item, [...path, at], deeper))];
    }
    if (value instanceof Promise) {
      return notData("a promise", "write `await` before it", path);
    }
    const prototype = Object.getPrototypeOf(value);
    if (prototype !== null && prototype !== Object.prototype && Object.prototype.toString.call(value) !== "[object Module]") {
      const name = prototype.constructor?.name || "a class";
      return notData(`an instance of ${name}`, "give a plain object, `{ ... }`, a list, a text or a number", path);
    }
    const members = [];
    for (const key of Object.keys(value)) {
      if (value[key] === undefined) continue;
      const there = [...path, key];
      if (key.includes(OPEN) || key.includes(CLOSE)) {
        complain(
          "program::reference_as_key",
          `${plain(key)} is not known while the program runs, so it cannot name a member`,
          "choose a name that is known, and put the reference into the value",
          there,
        );
        continue;
      }
      members.push([key, snapshot(value[key], there, deeper)]);
    }
    return ["m", members];
  };

  const known = (value, what, path) => {
    if (references.has(value) || (typeof value === "string" && value.includes(OPEN))) {
      complain(
        "program::invalid_option",
        `${what} must be known while the program runs`,
        "write it as a plain text",
        path,
      );
      return undefined;
    }
    if (typeof value !== "string") {
      complain("program::invalid_option", `${what} must be a text`, undefined, path);
      return undefined;
    }
    return value;
  };

  const OPTIONS = ["id", "config", "protect", "placeholder", "formerly"];

  const members = (value, what, path) => {
    if (value === undefined) return [];
    if (value === null || typeof value !== "object" || Array.isArray(value) || declared.has(value)) {
      complain("program::invalid_option", `${what} must be an object, \`{ ... }\``, undefined, path);
      return [];
    }
    return Object.keys(value)
      .filter((key) => value[key] !== undefined)
      .map((key) => [key, snapshot(value[key], [...path, key], [value])]);
  };

  // What can be called on a resource: the methods of its class and of those it is derived from.
  const methodsOf = (self) => {
    const names = new Set();
    for (let at = self; at !== null && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
      for (const name of Object.getOwnPropertyNames(at)) {
        const { value } = Object.getOwnPropertyDescriptor(at, name);
        // `bindable` is for packages that derive types.
        if (typeof value === "function" && !["constructor", "bindable"].includes(name)) names.add(name);
      }
    }
    return [...names].sort();
  };

  const declare = (self, type, options) => {
    const resource = { index: resources.length, type, stack: here(), contributions: [], dependOn: [] };
    if (options === null || typeof options !== "object") {
      refuse(
        "program::invalid_option",
        "a resource takes one object: `{ id, config }`",
        'write for example `new Worker({ id: "api", config: { ... } })`',
      );
    }
    if (references.has(options) || declared.has(options)) {
      refuse("program::invalid_option", "a resource takes a plain object: `{ id, config }`");
    }
    for (const key of Object.keys(options)) {
      if (!OPTIONS.includes(key)) resource.unknown = [...(resource.unknown ?? []), key];
    }
    if (options.id !== undefined) {
      resource.id = known(options.id, "`id`", ["id"]);
      resource.badId = resource.id === undefined;
    }
    if (options.protect !== undefined) {
      if (typeof options.protect !== "boolean") {
        complain("program::invalid_option", "`protect` must be true or false", undefined, ["protect"]);
      }
      resource.protect = options.protect === true;
    }
    if (options.placeholder !== undefined) {
      if (options.placeholder !== "never") {
        complain("program::invalid_option", '`placeholder` can only be "never"', "leave it out otherwise", ["placeholder"]);
      }
      resource.neverBare = options.placeholder === "never";
    }
    if (options.formerly !== undefined) {
      const earlier = Array.isArray(options.formerly) ? options.formerly : [options.formerly];
      resource.formerly = earlier
        .map((id) => known(id, "an id in `formerly`", ["formerly"]))
        .filter((id) => id !== undefined);
    }
    resource.config = members(options.config, "`config`", ["config"]);
    resources.push(resource);

    const children = new Map();
    const whole = (use) =>
      refuse(
        "program::resource_as_value",
        `${label(resource)} is a resource, so ${use}`,
        "use one of its properties, for example its name",
      );
    const proxy = new Proxy(self, {
      get(target, key, receiver) {
        if (typeof key === "symbol") {
          if (key === Symbol.toPrimitive) return () => whole("it is no text and no number");
          if (key === Symbol.iterator) return () => whole("it has no items");
          return Reflect.get(target, key, receiver);
        }
        if (key === "then") return undefined;
        if (key === "toJSON" || key === "toString" || key === "valueOf") {
          return () => whole("it cannot be written as a text");
        }
        if (Reflect.has(target, key)) return Reflect.get(target, key, receiver);
        let child = children.get(key);
        if (child === undefined) {
          child = referenceTo({ resource, self, path: [key] });
          children.set(key, child);
        }
        return child;
      },
      ownKeys: () => whole("its members cannot be listed"),
      // A class of one's own may keep things in its resource; whether the name is a field of the
      // type is judged where types are known.
      set(target, key, value) {
        if (typeof key === "string") {
          resource.assigned = [...(resource.assigned ?? []), { field: key, stack: here() }];
        }
        return Reflect.set(target, key, value);
      },
      deleteProperty: () => whole("nothing can be deleted from it"),
    });
    declared.set(proxy, resource);
    return proxy;
  };

  const resourceOf = (value, what) => {
    const resource = declared.get(value);
    if (resource === undefined) {
      refuse("program::not_a_resource", `${what} is not a resource`, "give the object that `new` returned");
    }
    return resource;
  };

  const runtime = {
    declare,
    contribute(self, values) {
      const resource = resourceOf(self, "the receiver of `contribute`");
      const stack = here();
      for (const [field, value] of members(values, "what is contributed", [])) {
        resource.contributions.push({ field, value, stack });
      }
    },
    dependOn(self, targets) {
      const resource = resourceOf(self, "the receiver of `dependOn`");
      const stack = here();
      for (const target of targets) {
        resource.dependOn.push({ target: resourceOf(target, "a target of `dependOn`").index, stack });
      }
    },
    // `a.bind(name, target)`: whether both are what they must be. What is bound is judged later.
    bindable(name, target, type) {
      const an = (word) => (/^[aeiou]/i.test(word) ? `an ${word}` : `a ${word}`);
      const wrong = (message, help, argument) => {
        problems.push({ code: "program::wrong_binding", message, help, argument, stack: here() });
        return false;
      };
      const example = 'write `a.bind("AUTH", auth)`: the name in the code first, then what it calls';
      if (declared.has(name) && typeof target === "string") {
        return wrong("the arguments of `bind` are swapped", example, 0);
      }
      const resource = declared.get(target);
      if (resource === undefined) {
        const reference = references.get(target);
        if (reference?.resource !== undefined) {
          return wrong(
            `\`bind\` takes the resource itself, not its property ${spell(reference)}`,
            `give ${label(reference.resource)}`,
            1,
          );
        }
        const given = target === undefined ? "nothing" : isUnknownText(target) ? "a text" : show(target, 1);
        return wrong(
          `\`bind\` takes what the code shall call, not ${given}`,
          `give the object that \`new\` returned; ${example}`,
          1,
        );
      }
      if (!resource.type.startsWith(type)) {
        return wrong(
          `\`bind\` takes ${an(type)}, and ${label(resource)} is ${an(resource.type)}`,
          `what it can call is another ${type.endsWith("/") ? `resource of ${type.slice(0, -1)}` : type}`,
          1,
        );
      }
      if (typeof name !== "string" || isUnknown(name)) {
        return wrong("the name of a binding must be known while the program runs", example, 0);
      }
      return true;
    },
    secret(name) {
      if (typeof name !== "string" || !/^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(name)) {
        refuse(
          "program::invalid_secret_name",
          `${typeof name === "string" ? JSON.stringify(name) : "what was given"} is not the name of a secret`,
          "a name has 1 to 128 letters, digits and `_`, and starts with a letter or `_`",
        );
      }
      secrets.push({ name, stack: here() });
      return referenceTo({ secret: name });
    },
    concat: (parts) => parts.map((part) => `${part}`).join(""),
  };

  // What the language has and a program must not use: the same program has to give the same graph.
  const WHY = "the same program must give the same graph, whenever and wherever it runs";
  const forbid = (name, why) =>
    refuse("program::not_repeatable", `${name} is not available to a program`, why ?? WHY);
  const clock = new Proxy(function Date() {}, {
    get(target, key) {
      if (typeof key === "symbol") return undefined;
      if (key === "prototype" || key === "name" || key === "length") return target[key];
      return forbid(`Date.${key}`, `${WHY}; write a date as a text`);
    },
    apply: () => forbid("Date", `${WHY}; write a date as a text`),
    construct: () => forbid("Date", `${WHY}; write a date as a text`),
  });
  const hidden = (value) => ({ value, writable: true, configurable: true, enumerable: false });
  const random = `${WHY}; write the value down, or leave a name out to have it generated`;
  Object.defineProperty(globalThis, "Date", hidden(clock));
  Object.defineProperty(Math, "random", hidden(() => forbid("Math.random", random)));
  Object.defineProperty(
    globalThis,
    "crypto",
    hidden(
      Object.freeze({
        randomUUID: () => forbid("crypto.randomUUID", random),
        getRandomValues: () => forbid("crypto.getRandomValues", random),
        get subtle() {
          return forbid("crypto.subtle", random);
        },
      }),
    ),
  );
  for (const name of ["Atomics", "SharedArrayBuffer", "WeakRef", "FinalizationRegistry", "performance"]) {
    delete globalThis[name];
  }

  // What people print while writing a program is said, not lost; a reference prints as itself.
  const show = (value, depth = 0) => {
    if (typeof value === "string") return depth === 0 ? plain(value) : JSON.stringify(plain(value));
    if (references.has(value)) return `\${${spell(references.get(value))}}`;
    if (declared.has(value)) {
      const resource = declared.get(value);
      return `${resource.type} ${label(resource)}`;
    }
    if (typeof value === "function") return `[function ${value.name}]`;
    if (value === null || typeof value !== "object") return String(value);
    if (value instanceof Error) return plain(String(value));
    if (depth > 4) return "...";
    if (Array.isArray(value)) return `[${value.map((item) => show(item, depth + 1)).join(", ")}]`;
    const members = Object.keys(value).map((key) => `${plain(key)}: ${show(value[key], depth + 1)}`);
    return members.length === 0 ? "{}" : `{ ${members.join(", ")} }`;
  };
  const say = (...values) => {
    if (said.length < 1000) said.push(values.map((value) => show(value)).join(" "));
  };
  Object.defineProperty(
    globalThis,
    "console",
    hidden(Object.freeze({ log: say, info: say, warn: say, error: say, debug: say, trace: say })),
  );

  const fixed = (value) => ({ value, writable: false, configurable: false, enumerable: false });
  Object.defineProperty(globalThis, "__notation_ask", fixed(ask));
  Object.defineProperty(globalThis, "__notation_turn", fixed(() => {}));
  Object.defineProperty(globalThis, "\0notation", {
    value: Object.freeze({
      ...runtime,
      rejected(promise, reason, handled) {
        if (handled) rejections.delete(promise);
        else rejections.set(promise, reason);
      },
      unhandled: () => [...rejections.values()],
      plain: (value) => plain(String(value)),
      finish(exports) {
        const outputs = [];
        for (const name of Object.keys(exports)) {
          const value = exports[name];
          if (value === undefined) continue;
          const resource = declared.get(value);
          if (resource !== undefined || (typeof value === "function" && !references.has(value))) {
            problems.push({
              code: "program::export_not_data",
              message: `the entry exports \`${name}\`, which is ${resource ? "a resource" : "a function"} and not data`,
              help: resource
                ? "export one of its properties instead, or drop `export`"
                : "drop `export`, or move it to a file of its own",
              path: [name],
              exported: name,
            });
            continue;
          }
          const before = problems.length;
          outputs.push([name, snapshot(value, [name], [])]);
          for (let at = before; at < problems.length; at += 1) {
            problems[at].exported = name;
            problems[at].stack = undefined;
          }
        }
        return JSON.stringify({ resources, exports: outputs, problems, said, secrets });
      },
    }),
  });
})();
