import { concat, interpolate } from "@notation/core";
import type { Ref } from "@notation/core";
import { Blind, Frozen, GuardedWorker, PinnedWorker, StrictWorker, Thing, Worker } from "@notation/sim";

const a = new Worker({ id: "a" });
const strict = new StrictWorker({ id: "b", config: { region: "north", code: a.arn } });
const thing = new Thing({ id: "t", config: { value: { deep: [1, true, null, a.arn] }, parent: a.Name } });
new Thing({ id: "u", config: { value: thing.value.routes[0].host, note: `${thing.id}!` } });
new PinnedWorker({ id: "p", config: { bindings: [{ type: "service", service: a.Name }] } });
new GuardedWorker({ id: "g", config: {} }).bind("A", a);
new Frozen({ id: "f", config: { value: 1 } });
const blind: Ref<string> = new Blind({ id: "x" }).id;
a.contribute({ bindings: { service: strict.Name } }).dependOn(thing, strict);
strict.bind("A", a);
export const all = concat(a.arn, "-", 1);
export const tagged = interpolate`${a.arn} and ${blind}`;

// error: 'colour' does not exist
new Thing({ id: "v", config: { colour: "red" } });
// error: is not assignable to type
new Thing({ id: "w", config: { value: () => 1 } });
// error: Type 'number' is not assignable to type 'string'
new Worker({ id: "y", config: { region: 7 } });
// error: 'parent' does not exist
new Frozen({ id: "z", config: { parent: "a" } });
