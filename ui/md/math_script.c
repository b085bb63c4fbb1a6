/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Superscripts, subscripts, accents and alphabets of formulas, as Unicode has them. */
#include <string.h>

#include "ui/md/math_impl.h"

typedef struct Script {
    const char *text, *super, *sub; /* "" = there is none */
} Script;

/* Source: the blocks Superscripts and Subscripts, Spacing Modifier Letters and Phonetic Extensions. */
static const Script scripts[] = {
    { "0", "⁰", "₀" }, { "1", "¹", "₁" }, { "2", "²", "₂" }, { "3", "³", "₃" }, { "4", "⁴", "₄" },
    { "5", "⁵", "₅" }, { "6", "⁶", "₆" }, { "7", "⁷", "₇" }, { "8", "⁸", "₈" }, { "9", "⁹", "₉" },
    { "+", "⁺", "₊" }, { "-", "⁻", "₋" }, { "=", "⁼", "₌" }, { "(", "⁽", "₍" }, { ")", "⁾", "₎" },
    { "a", "ᵃ", "ₐ" }, { "b", "ᵇ", "" },  { "c", "ᶜ", "" },  { "d", "ᵈ", "" },  { "e", "ᵉ", "ₑ" },
    { "f", "ᶠ", "" },  { "g", "ᵍ", "" },  { "h", "ʰ", "ₕ" }, { "i", "ⁱ", "ᵢ" }, { "j", "ʲ", "ⱼ" },
    { "k", "ᵏ", "ₖ" }, { "l", "ˡ", "ₗ" }, { "m", "ᵐ", "ₘ" }, { "n", "ⁿ", "ₙ" }, { "o", "ᵒ", "ₒ" },
    { "p", "ᵖ", "ₚ" }, { "r", "ʳ", "ᵣ" }, { "s", "ˢ", "ₛ" }, { "t", "ᵗ", "ₜ" }, { "u", "ᵘ", "ᵤ" },
    { "v", "ᵛ", "ᵥ" }, { "w", "ʷ", "" },  { "x", "ˣ", "ₓ" }, { "y", "ʸ", "" },  { "z", "ᶻ", "" },
    { "A", "ᴬ", "" },  { "B", "ᴮ", "" },  { "D", "ᴰ", "" },  { "E", "ᴱ", "" },  { "G", "ᴳ", "" },
    { "H", "ᴴ", "" },  { "I", "ᴵ", "" },  { "J", "ᴶ", "" },  { "K", "ᴷ", "" },  { "L", "ᴸ", "" },
    { "M", "ᴹ", "" },  { "N", "ᴺ", "" },  { "O", "ᴼ", "" },  { "P", "ᴾ", "" },  { "R", "ᴿ", "" },
    { "T", "ᵀ", "" },  { "U", "ᵁ", "" },  { "W", "ᵂ", "" },  { "β", "ᵝ", "ᵦ" }, { "γ", "ᵞ", "ᵧ" },
    { "δ", "ᵟ", "" },  { "φ", "ᵠ", "ᵩ" }, { "χ", "ᵡ", "ᵪ" }, { "ρ", "", "ᵨ" },  { "θ", "ᶿ", "" },
    { "°", "°", "" },  { "∘", "°", "" },  { "′", "′", "" },  { "″", "″", "" },  { "−", "⁻", "₋" },
};

static size_t char_len(const char *s, size_t len) {
    size_t n = 1;
    while (n < len && ((unsigned char)s[n] & 0xc0) == 0x80) n++;
    return n;
}

static const char *scripted(bool super, const char *s, size_t len) {
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        const Script *x = &scripts[i];
        if (strlen(x->text) == len && memcmp(x->text, s, len) == 0) return super ? x->super : x->sub;
    }
    return "";
}

/* Nothing is appended if a character has no equivalent. */
static bool all_scripted(UiBuf *out, bool super, const char *text, size_t len) {
    const size_t start = out->len;
    for (size_t i = 0, n; i < len; i += n) {
        n = char_len(text + i, len - i);
        if (text[i] == ' ') continue;
        const char *s = scripted(super, text + i, n);
        if (!*s) {
            out->len = start;
            return false;
        }
        (void)ui_buf_puts(out, s);
    }
    return true;
}

void ui_math_script(UiBuf *out, bool super, const char *text, size_t len) {
    if (len == 0 || all_scripted(out, super, text, len)) return;
    bool alone = true; /* one letter or word */
    for (size_t i = 0; i < len; i++) alone = alone && (text[i] | 32) >= 'a' && (text[i] | 32) <= 'z';
    alone = alone || char_len(text, len) == len;
    (void)ui_buf_puts(out, super ? "^" : "_");
    if (!alone) (void)ui_buf_puts(out, "(");
    for (size_t i = 0; i < len; i++)
        if (text[i] != ' ') (void)ui_buf_add(out, text + i, 1);
    if (!alone) (void)ui_buf_puts(out, ")");
}

void ui_math_mark(UiBuf *out, const char *mark, const char *name, const char *text, size_t len) {
    const bool letter = len > 0 && char_len(text, len) == len && text[0] != ' ';
    if (!letter) (void)ui_buf_printf(out, "%s(", name);
    (void)ui_buf_add(out, text, len);
    (void)ui_buf_puts(out, letter ? mark : ")");
}

void ui_math_double_struck(UiBuf *out, const char *text, size_t len) {
    static const char *const struck[] = { "𝔸", "𝔹", "ℂ", "𝔻", "𝔼", "𝔽", "𝔾", "ℍ", "𝕀", "𝕁", "𝕂", "𝕃", "𝕄",
                                          "ℕ", "𝕆", "ℙ", "ℚ", "ℝ", "𝕊", "𝕋", "𝕌", "𝕍", "𝕎", "𝕏", "𝕐", "ℤ" };
    for (size_t i = 0; i < len; i++) {
        if (text[i] >= 'A' && text[i] <= 'Z')
            (void)ui_buf_puts(out, struck[text[i] - 'A']);
        else
            (void)ui_buf_add(out, text + i, 1);
    }
}
