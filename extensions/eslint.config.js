import js from "@eslint/js";
import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["node_modules", "dist", "build.mjs", "vitest.recorded.config.mjs", "eslint.config.js"] },
  js.configs.recommended,
  ...tseslint.configs.strictTypeChecked,
  ...tseslint.configs.stylisticTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      eqeqeq: "error",
      "max-lines": ["error", { max: 320, skipBlankLines: true, skipComments: true }],
      "max-depth": ["error", 3],
      "no-console": "error",
      // Numbers may be interpolated; other values must be converted explicitly.
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      // Event handlers are written as `() => store.send(...)`.
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
    },
  },
  // Generated from workbench/protocol.py.
  { files: ["core/protocol.ts"], rules: { "max-lines": "off" } },
);
