import { SELECT } from "../code/program";
import { PANELS } from "../panels/registry";
import type { Command } from "./command";
import { EDIT_COMMANDS } from "./edit";
import { paneCommands } from "./panes";
import { RULE_COMMANDS } from "./rule";
import { RUN_COMMANDS } from "./run";
import { STAGE_COMMANDS } from "./stage";
import { TEXT_COMMANDS, asCommand, copy } from "./text";
import { TRACE_COMMANDS } from "./trace";

/** All commands, in the order of the palette. */
export const COMMANDS: readonly Command[] = [
  ...EDIT_COMMANDS,
  ...RUN_COMMANDS,
  ...RULE_COMMANDS,
  ...TRACE_COMMANDS,
  ...paneCommands(PANELS),
  ...STAGE_COMMANDS,
  ...[SELECT, ...TEXT_COMMANDS, copy].map(asCommand),
];
