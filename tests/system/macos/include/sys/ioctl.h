/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef STUB_SYS_IOCTL_H
#define STUB_SYS_IOCTL_H
struct winsize {
    unsigned short ws_row, ws_col, ws_xpixel, ws_ypixel;
};
#define TIOCGWINSZ 0x40087468ul
#define TIOCSTI    0x80017472ul
#define FIONREAD   0x4004667ful
int ioctl(int fd, unsigned long what, ...);
#endif
