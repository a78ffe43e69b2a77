// Runs where it is the program, and not where a test imports it.
import { Extension } from "../../src/index.js";

export const ext = new Extension("main", "1.0.0");

await ext.run({ main: import.meta });
