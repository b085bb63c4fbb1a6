#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The direction of dependencies, the one file that includes each library, and no exit() below a main().
. "$(dirname "$0")/lib.sh"
[ -z "${QSF_SAN-}" ] || skip "the sources are the same with sanitizers"
cd "$QSF_SRCDIR" || exit 1
tab=$(printf '\t')

engine='src/base/* src/file/* src/jinja/* src/token/* src/chat/* src/model/* src/plan/* src/stream/* src/kv/* src/forward/* src/sample/* src/grammar/* src/speculate/* kernels/*'

# Allowed includes, by the path written in #include "...". "api" is include/; DIR/= is the files in DIR, not those in
# its folders.
allowed() {
    case $1 in
    kernels/*) echo 'kernels/*' ;;
    include/*) echo 'api' ;;
    src/base/*) echo 'src/base/* qsf_savefile.h qsf_decode.h qsf_system.h qsf_data.h' ;; # the public headers that it implements
    # Formats know the interface of sources and what they share, but not each other; only open.c names them,
    # by format.h.
    src/file/gguf/*) echo 'src/base/* src/file/= src/file/gguf/* src/file/derive/derive.h' ;;
    src/file/qsf/*) echo 'src/base/* src/file/= src/file/qsf/*' ;;
    src/file/hf/*) echo 'src/base/* src/file/= src/file/hf/* src/file/derive/derive.h src/file/vocab/vocab.h src/file/vocab/keys.h kernels/blocks.h' ;;
    src/file/vocab/*) echo 'src/base/* src/file/= src/file/vocab/*' ;;
    src/file/derive/*) echo 'src/base/* src/file/= src/file/derive/* kernels/blocks.h' ;;
    src/file/*) echo 'src/base/* src/file/= kernels/blocks.h' ;;
    src/jinja/*) echo 'src/base/* src/jinja/*' ;;
    src/token/*) echo 'src/base/* src/token/* src/file/* api' ;;
    src/chat/*) echo 'src/base/* src/chat/* src/jinja/* src/token/* src/file/* api' ;;
    src/model/*) echo 'src/base/* src/model/* src/file/* kernels/blocks.h' ;;
    src/plan/*) echo 'src/base/* src/plan/* src/model/* src/file/* src/token/tokenizer.h kernels/* api' ;;
    src/stream/*) echo 'src/base/* src/stream/* src/plan/* src/model/* src/file/* kernels/*' ;;
    src/kv/*) echo 'src/base/* src/kv/* src/plan/* src/model/* kernels/*' ;;
    src/forward/*) echo 'src/base/* src/forward/* src/kv/* src/stream/* src/plan/* src/model/* src/file/* src/token/tokenizer.h kernels/* api' ;;
    src/sample/*) echo 'src/base/* src/sample/* kernels/* api' ;;
    src/speculate/*) echo 'src/base/* src/speculate/* src/forward/* src/plan/* src/model/* src/token/tokenizer.h api' ;;
    src/grammar/*) echo 'src/base/* src/grammar/* src/token/tokenizer.h' ;;
    src/cli/*) echo 'src/base/* src/cli/* api' ;;
    src/engine/*) echo "$engine src/engine/* api" ;;
    src/catalog/*) echo "$engine src/engine/* src/catalog/* api" ;;
    src/measure/*) echo "$engine src/engine/* src/measure/* api" ;;
    src/convert/quant/*) echo \
        'src/base/* src/convert/quant/* src/file/qsf/type_codes.h kernels/blocks.h kernels/books.h kernels/cpu.h' \
        ;;
    src/convert/pack/*) echo 'src/base/* src/convert/pack/* src/convert/quant/* src/file/* kernels/*' ;;
    src/convert/calibrate/*) echo "$engine src/convert/calibrate/* src/convert/pack/* src/engine/* api" ;;
    src/convert/*) echo 'src/base/* src/convert/* src/engine/model_info.h src/engine/habits/file.h src/cli/*' \
        'src/engine/adapters.h src/model/adapter.h src/file/* kernels/* api' ;;
    src/remote/*) echo 'src/base/* src/remote/* api' ;;
    src/web/*) echo "src/base/* src/web/* src/stream/io_impl.h api" ;;
    src/svg/*) echo 'src/base/* src/svg/*' ;;
    src/run/*) echo "$engine src/run/* src/svg/* src/engine/* src/measure/* src/cli/* api" ;;
    ui/*) echo 'ui/* api' ;;
    get/*) echo 'get/* src/base/* src/cli/signals.h src/model/model.h api' ;;
    serve/*) echo 'serve/* src/base/* src/cli/signals.h src/chat/call_params.h src/chat/call_value.h api' ;;
    esac
}

# The includes of a file come one after the other.
may_include() {
    [ "$1" = "${asked-}" ] || { asked=$1 patterns=$(allowed "$1"); }
    set -f
    for pattern in $patterns; do
        # shellcheck disable=SC2254  # a pattern is wanted
        case $2 in
        $pattern) set +f; return 0 ;;
        */*) [ "${2%/*}/=" != "$pattern" ] || { set +f; return 0; } ;;
        *) if [ "$pattern" = api ] && [ -f "include/$2" ]; then set +f; return 0; fi ;;
        esac
    done
    set +f
    return 1
}

# Third-party headers and the one file each may appear in: $where.
door() {
    where=''
    case $1 in
    *curses.h | term.h | panel.h) where=ui/term_curses.c ;;
    readline/*) where='ui/input.c ui/input_lines.c ui/input_common.c ui/input_plain.c' ;;
    md4c*.h) where=ui/md/parse.c ;;
    curl/*) where=get/http.c ;;
    nettle/*) where='get/hash.h get/hash.c' ;;
    microhttpd.h) where=serve/http.c ;;
    utf8proc.h) where=src/base/unicode.c ;;
    pcre2*.h) where=src/token/regex.c ;;
    jansson.h) where=src/base/json.c ;;
    ini.h) where=src/cli/ini.c ;;
    libdeflate.h) where=src/base/crc32.c ;;
    lz4*.h) where=src/base/lz.c ;;
    zstd*.h | zdict.h) where=src/base/zstd.c ;;
    liburing.h | liburing/* | linux/io_uring.h) where=src/stream/uring.c ;;
    esac
}

# What only one kind of system has is below src/base, for that system (src/base/platform.h).
system_only() {
    case $1 in
    linux/* | sys/auxv.h | sys/prctl.h | sys/random.h | sys/syscall.h | sys/vfs.h | malloc.h | \
        sys/eventfd.h | sys/epoll.h | sys/signalfd.h | sys/timerfd.h | sys/inotify.h | sys/sendfile.h)
        where=src/base/linux
        ;;
    mach/* | mach-o/* | malloc/* | libproc.h | sys/sysctl.h | sys/event.h | sys/mount.h | os/*)
        where=src/base/macos
        ;;
    *) return 1 ;;
    esac
}

# Kernels use the language and the instruction sets, but nothing that allocates, locks or makes system calls,
# except cpu.c, which detects the features of the CPU.
kernel_header() {
    case $2 in
    assert.h | float.h | limits.h | math.h | stdbool.h | stdalign.h | stddef.h | stdint.h | string.h) ;;
    immintrin.h | smmintrin.h | nmmintrin.h | tmmintrin.h | arm_neon.h | wasm_simd128.h) ;;
    cpuid.h | stdatomic.h | stdlib.h | sys/auxv.h | sys/sysctl.h) [ "$1" = kernels/cpu.c ] ;;
    *) return 1 ;;
    esac
}

find src ui get serve kernels include -name '*.[ch]' | sort >"$work/files"
[ -s "$work/files" ] || fail "no sources found below $QSF_SRCDIR"

# One line for each: FILE, a tab, what it includes. One process, because hundreds take seconds.
xargs awk '/^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]/ {
    if (match($0, /[<"][^>"]*[>"]/)) print FILENAME "\t" substr($0, RSTART, RLENGTH)
}' <"$work/files" >"$work/includes"
[ "$(wc -l <"$work/includes")" -gt 1000 ] || fail "too few #include lines found"
while IFS="$tab" read -r file inc; do
    name=${inc#?}
    name=${name%?}
    case $inc in
    \"*)
        [ "$name" = config.h ] || may_include "$file" "$name" || fail "$file must not include $inc"
        ;;
    \<*)
        door "$name"
        [ -z "$where" ] || case " $where " in *" $file "*) ;; *) false ;; esac ||
            fail "$file includes $inc, which only $where may include"
        if system_only "$name"; then
            case $file in
            "$where"/* | kernels/*) ;;
            *) fail "$file includes $inc, which only $where may include" ;;
            esac
        fi
        case $file in
        kernels/*) kernel_header "$file" "$name" ||
            fail "$file must not include $inc: kernels may only use the language" ;;
        esac
        ;;
    esac
done <"$work/includes"

# No other file asks for which system it is compiled.
grep -vE '^src/base/(linux|macos|posix)/|^kernels/cpu\.c$' "$work/files" |
    xargs grep -nE '^[[:space:]]*#.*\<__(APPLE|linux|GLIBC|FreeBSD)__' >"$work/systems" &&
    { cat "$work/systems"; fail "what differs between systems belongs to src/base/platform.h"; }

# Comments and strings are blanked before looking for the calls.
# A signal may end a program at once.
grep -vE '/main\.c$|^src/cli/signals\.c$|\.h$' "$work/files" | xargs awk '
    FNR == 1 { comment = 0 }
    {
        out = ""; line = $0
        while (line != "") {
            if (comment) {
                at = index(line, "*/")
                if (!at) break
                line = substr(line, at + 2); comment = 0
            } else if (match(line, /\/\*|\/\/|"([^"\\]|\\.)*"/)) {
                out = out substr(line, 1, RSTART - 1); tok = substr(line, RSTART, 2)
                line = substr(line, RSTART + RLENGTH)
                if (tok == "//") break
                if (tok == "/*") comment = 1
            } else { out = out line; break }
        }
        if (out ~ /(^|[^A-Za-z0-9_])(_?exit|_Exit|quick_exit|abort)[ ]*\(/) print FILENAME ":" FNR ": " $0
    }' >"$work/exits"
[ ! -s "$work/exits" ] || { cat "$work/exits"; fail "exit or abort below main: return errors as values"; }

finish
