export { defineConfig } from "./config";
export type { ProjectConfig } from "./config";
export type { NameSafe } from "./names";
export { concat, interpolate, secret } from "./reference";
export type { Ref, Reference, TextPart } from "./reference";
export { Resource } from "./resource";
export type { ResourceArgs, ResourceOptions } from "./resource";
