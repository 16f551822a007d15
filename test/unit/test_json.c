/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "json.h"
#include "unit.h"

static char *text;
static size_t length;

static struct nbc_json json_begin(void)
{
    return (struct nbc_json){.out = open_memstream(&text, &length)};
}

static void json_is(struct nbc_json *j, const char *expected)
{
    fclose(j->out);
    ck_assert_str_eq(text, expected);
    free(text);
}

UNIT(values_are_separated)
{
    struct nbc_json j = json_begin();
    nbc_json_open(&j, NULL, "{");
    nbc_json_int(&j, "a", -1);
    nbc_json_bool(&j, "b", true);
    nbc_json_string(&j, "c", NULL);
    nbc_json_open(&j, "d", "[");
    nbc_json_int(&j, NULL, 1);
    nbc_json_int(&j, NULL, 2);
    nbc_json_close(&j, "]");
    nbc_json_close(&j, "}");
    json_is(&j, "{\"a\": -1, \"b\": true, \"c\": null, \"d\": [1, 2]}");
}

UNIT(lines_begin_after_the_comma)
{
    struct nbc_json j = json_begin();
    nbc_json_open(&j, NULL, "[");
    for (int i = 0; i < 2; i++) {
        nbc_json_line(&j, NULL, "{");
        nbc_json_close(&j, "}");
    }
    nbc_json_close(&j, "\n]");
    json_is(&j, "[\n{},\n{}\n]");
}

UNIT(strings_are_escaped)
{
    struct nbc_json j = json_begin();
    nbc_json_string(&j, "a\"b", "\\ \n \xe4 ~");
    json_is(&j, "\"a\\\"b\": \"\\\\ \\u000a \\u00e4 ~\"");
}

/* Overlong forms, surrogates, what is cut off and what is above U+10FFFF are not UTF-8. */
UNIT(utf8_is_kept_and_other_bytes_are_escaped)
{
    struct nbc_json j = json_begin();
    nbc_json_string(&j, NULL, "\u00e4\u20ac\U0001f600 \xe2\x82");
    nbc_json_string(&j, NULL, "\xc0\xaf \xed\xa0\x80 \xf4\x90\x80\x80");
    json_is(&j, "\"\u00e4\u20ac\U0001f600 \\u00e2\\u0082\", "
                "\"\\u00c0\\u00af \\u00ed\\u00a0\\u0080 \\u00f4\\u0090\\u0080\\u0080\"");
}

UNIT(fixed_numbers_have_all_their_digits)
{
    struct nbc_json j = json_begin();
    nbc_json_fixed(&j, NULL, 5, 3);
    nbc_json_fixed(&j, NULL, -1500, 3);
    nbc_json_fixed(&j, NULL, INT64_MIN, 9);
    nbc_json_fixed(&j, NULL, 7, 0);
    json_is(&j, "0.005, -1.500, -9223372036.854775808, 7");
}
