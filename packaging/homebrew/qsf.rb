# SPDX-License-Identifier: GPL-3.0-or-later
# `make recipes` writes package/homebrew/qsf.rb, with the checksum of the archive of `make dist`.
class Qsf < Formula
  desc "Chat with a language model larger than its RAM budget"
  homepage "https://example.org/qsf"
  url "https://example.org/qsf/qsf-0.1.0.tar.gz"
  sha256 "@SHA256@"
  license "GPL-3.0-or-later"

  depends_on "pkgconf" => :build
  depends_on "curl"
  depends_on "inih"
  depends_on "jansson"
  depends_on "libdeflate"
  depends_on "libmicrohttpd"
  depends_on "liburing"
  depends_on :linux
  depends_on "lz4"
  depends_on "md4c"
  depends_on "ncurses"
  depends_on "nettle"
  depends_on "pcre2"
  depends_on "readline"
  depends_on "utf8proc"
  depends_on "zstd"

  def install
    system "./configure", "--prefix=#{prefix}"
    system "make"
    system "make", "install"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/qsf-chat --version")
    assert_match version.to_s, shell_output("#{bin}/qsf-get --version")
    # The built-in guide is a whole model: it is found, loaded and run.
    assert_match "/quit", pipe_output("#{bin}/qsf-chat --no-config guide", "How do I quit?\n", 0)
    # The library, with what pkg-config says about it.
    (testpath/"t.c").write <<~C
      #include <qsf.h>
      int main(void) { return qsf_error() != 0; }
    C
    flags = shell_output("pkgconf --cflags --libs qsf").chomp.split
    system ENV.cc, "t.c", "-o", "t", *flags
    system "./t"
  end
end
