#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The sources of all programs, compiled for macOS on ARM64 by clang against tests/system/macos/include: our
# own declarations of what Apple documents, and only of what we use. A call that macOS does not have, or has
# in another form, does not compile; a function that no file for macOS defines is found. This is not a build:
# nothing is linked with Apple's libraries, and nothing runs.
. "$(dirname "$0")/lib.sh"
[ -z "${QSF_SAN-}" ] || skip "the sources are the same with sanitizers"
echo "NOTE: FOR MACOS THE SOURCES ARE ONLY COMPILED, with declarations of our own. Nothing is linked or run."
have clang || skip "no clang: NOTHING WAS COMPILED FOR MACOS"
cd "$work" || exit 1

# mac OPTIONS...: the compiler, as configure would call it there.
cat >mac <<END
#!/bin/sh
exec clang --target=arm64-apple-macos13 -nostdlibinc -isystem '$QSF_SRCDIR/tests/system/macos/include' \\
    -isystem lib -std=c11 -D_GNU_SOURCE -ffp-contract=off -include config.h -I'$QSF_SRCDIR/include' \\
    -I'$QSF_SRCDIR' -DQK_ARCH_ARM=1 -O0 -Werror=implicit-function-declaration -Werror=int-conversion -Werror=return-type \\
    -Werror=incompatible-pointer-types -Werror=format -c "\$@"
END
chmod +x mac
: >config.h
echo 'int main(void) { return 0; }' >t.c
./mac t.c -o t.o 2>log || skip "this clang does not compile for it: NOTHING WAS COMPILED FOR MACOS"
sed "s/\(QSF_HAVE_URING\) .*/\1 0/; s/\(define QSF_HAVE_I8MM\) .*/\1 1/" "$QSF_BUILDDIR/config.h" >config.h
echo '#define st_mtim st_mtimespec' >>config.h # as configure does on macOS

# Headers of libraries are the same on all systems: links to those of this build, and to nothing beside them.
mkdir lib
flags="$(config LIB_CFLAGS) $(config UI_CFLAGS) $(config GET_CFLAGS) $(config SERVE_CFLAGS)"
link_header() { # NAME as #include writes it, or its folder; false if it is not here
    echo "#include <$1>" >h.c
    # shellcheck disable=SC2086
    $CC $flags -M h.c 2>/dev/null | tr ' ' '\n' | grep "/$1\$" | head -n 1 >path
    [ -s path ] || return 1
    case $1 in
    */*) [ -e "lib/${1%/*}" ] || ln -s "$(dirname "$(cat path)")" "lib/${1%/*}" ;;
    *) ln -s "$(cat path)" "lib/$1" ;;
    esac
}
needed='utf8proc.h pcre2.h jansson.h ini.h libdeflate.h lz4.h lz4hc.h md4c.h curses.h term.h readline/readline.h'
for h in $needed; do
    link_header $h || fail "no <$h>, although the build has it"
done
for h in jansson_config.h ncurses_dll.h unctrl.h zstd.h zstd_errors.h; do link_header $h; done

# What other systems have is not declared by accident.
for call in 'pipe2(0, O_CLOEXEC)' 'memrchr("", 0, 0)' 'fdatasync(0)' 'open("", O_DIRECT)'; do
    printf '#include <fcntl.h>\n#include <string.h>\n#include <unistd.h>\nint main(void) { return !%s; }\n' \
        "$call" >t.c
    ! ./mac t.c -o t.o 2>/dev/null || fail "this compiles for macOS: $call"
done

(cd "$QSF_BUILDDIR" && "$MAKE" -s --no-print-directory list-src PLATFORM=macos ARCH=arm) | grep "\.c\$" >all
grep -q '^src/base/macos/' all || fail "the list of sources has none of macOS"
! grep '^src/base/linux/' all || fail "the list of sources has some of Linux"
! { link_header curl/curl.h && link_header nettle/sha2.h; } || get=1
[ -n "${get-}" ] || { grep -v '^get/' all >t && mv t all; }
! link_header microhttpd.h || serve=1
[ -n "${serve-}" ] || { grep -v '^serve/' all >t && mv t all; }
[ "$(wc -l <all)" -gt 400 ] || fail "only $(wc -l <all) sources"

# In make check those that ask the system for something.
cp all these
[ -z "${QSF_TEST_QUICK-}" ] || (cd "$QSF_SRCDIR" && xargs grep -lE \
    '#include <(sys/|fcntl|unistd|poll|signal|spawn|dirent|pthread|termios|locale|langinfo|wchar|time)|^#include "src/base/platform.h"' \
    <"$work/all") >these
# A source is included by a file of the same name here, whose object file is beside it.
mkdir these.d
awk '{ name = $0; gsub("/", ".", name); name = "these.d/" name; print "#include \"" $0 "\"" >name; close(name); print name }' \
    these >files
if ! clang_many many ./mac "$(head -n 1 files)" || ! xargs -n 100 -P 2 sh many <files >log 2>&1; then
    # One by one, to name those that do not compile.
    # shellcheck disable=SC2016
    xargs -n 1 -P 2 sh -c './mac "$0" -o "${0%.c}.o" 2>"$0.log" || echo "$0"' <files >wrong
fi
[ -e wrong ] || : >wrong
kernels=0
if [ -z "${QSF_TEST_QUICK-}" ]; then
    (cd "$QSF_BUILDDIR" && "$MAKE" -s --no-print-directory kernel-src ARCH=arm O="$work/k") || fail "make kernel-src"
    ls k/kernels/generated/*.c >generated
    kernels=$(wc -l <generated)
    [ "$kernels" -gt 100 ] || fail "only $kernels kernels"
    # shellcheck disable=SC2016
    xargs -n 1 -P 2 sh -c 'case $1 in *_i8mm.c) isa=+i8mm ;; *) isa= ;; esac
        ./mac -march=armv8.2-a+dotprod$isa -fsyntax-only "$1" 2>"$1.log" || echo "$1"' mac \
        <generated >>wrong
fi
if [ -s wrong ]; then
    sort wrong | head -n 5 | while read -r file; do
        echo "$file:"
        head -n 20 "$file.log"
    done
    echo "What macOS has, too, is declared in tests/system/macos/include; else src/base/platform.h hides it."
    fail "these do not compile for macOS: $(sort wrong | tr '\n' ' ')"
    finish
fi

# Each function of the platform is there; of all sources each of our functions.
nm=$(clang -print-prog-name=llvm-nm)
find these.d -name '*.o' >objects
[ "$(wc -l <objects)" = "$(wc -l <these)" ] || fail "$(wc -l <objects) objects of $(wc -l <these) sources"
xargs "$nm" -P <objects >names 2>log || { cat log; fail "$nm"; finish; }
awk '$2 == "T" || $2 == "D" || $2 == "S" || $2 == "C" { print $1 }' names | sort -u >defined
sed -n 's/^[a-z].*[ *]\(qsf_[a-z0-9_]*\)(.*/_\1/p' "$QSF_SRCDIR/src/base/platform.h" \
    "$QSF_SRCDIR/include/qsf_system.h" "$QSF_SRCDIR/src/base/clock.h" | sort -u >wanted
[ "$(wc -l <wanted)" -gt 30 ] || fail "only $(wc -l <wanted) functions in the headers"
if cmp -s all these; then
    awk '$2 == "U" && /^_(qsf|ui|get|run|serve|qk)_/ && $1 !~ /_(neon|dotprod|i8mm)$/ { print $1 }' names >>wanted
fi
sort -u wanted | comm -23 - defined >missing
[ ! -s missing ] || { head missing; fail "no file for macOS defines these"; }
echo "compiled for arm64-apple-macos13: $(wc -l <these) of $(wc -l <all) sources, $kernels kernels"
finish
