// SPDX-License-Identifier: GPL-3.0-or-later
// Emscripten 3.1.6 would fetch its module by a path where there is fetch, which node has since version 18.
delete globalThis.fetch;
