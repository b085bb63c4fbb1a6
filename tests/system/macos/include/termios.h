/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef STUB_TERMIOS_H
#define STUB_TERMIOS_H
typedef unsigned long tcflag_t;
typedef unsigned char cc_t;
typedef unsigned long speed_t;
#define NCCS      20
#define VEOF      0
#define VEOL      1
#define VERASE    3
#define VKILL     5
#define VINTR     8
#define VQUIT     9
#define VSUSP     10
#define VSTART    12
#define VSTOP     13
#define VMIN      16
#define VTIME     17
#define ECHO      0x00000008
#define ISIG      0x00000080
#define ICANON    0x00000100
#define NOFLSH    0x80000000
#define IEXTEN    0x00000400
#define ICRNL     0x00000100
#define INLCR     0x00000040
#define IXON      0x00000200
#define OPOST     0x00000001
#define TCSANOW   0
#define TCSADRAIN 1
#define TCSAFLUSH 2
#define TCIFLUSH  1
struct termios {
    tcflag_t c_iflag;
    tcflag_t c_oflag;
    tcflag_t c_cflag;
    tcflag_t c_lflag;
    cc_t c_cc[NCCS];
    speed_t c_ispeed;
    speed_t c_ospeed;
};
int tcflush(int fd, int queue);
int tcgetattr(int fd, struct termios *t);
int tcsetattr(int fd, int how, const struct termios *t);
#endif
