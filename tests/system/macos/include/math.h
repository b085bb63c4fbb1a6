/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef STUB_MATH_H
#define STUB_MATH_H
typedef float float_t;
typedef double double_t;
#define HUGE_VAL        __builtin_huge_val()
#define HUGE_VALF       __builtin_huge_valf()
#define INFINITY        __builtin_inff()
#define NAN             __builtin_nanf("0x7fc00000")
#define M_E             2.71828182845904523536
#define M_LN2           0.69314718055994530942
#define M_LN10          2.30258509299404568402
#define M_LOG2E         1.44269504088896340736
#define M_PI            3.14159265358979323846
#define M_PI_2          1.57079632679489661923
#define M_SQRT2         1.41421356237309504880
#define M_SQRT1_2       0.70710678118654752440
#define FP_NAN          1
#define FP_INFINITE     2
#define FP_ZERO         3
#define FP_NORMAL       4
#define FP_SUBNORMAL    5
#define isnan(x)        __builtin_isnan(x)
#define isinf(x)        __builtin_isinf(x)
#define isfinite(x)     __builtin_isfinite(x)
#define isnormal(x)     __builtin_isnormal(x)
#define signbit(x)      __builtin_signbit(x)
#define fpclassify(x)   __builtin_fpclassify(FP_NAN, FP_INFINITE, FP_NORMAL, FP_SUBNORMAL, FP_ZERO, x)
#define isless(x, y)    __builtin_isless(x, y)
#define isgreater(x, y) __builtin_isgreater(x, y)
#define ONE_ARG(name)      \
    double name(double x); \
    float name##f(float x);
#define TWO_ARGS(name)               \
    double name(double x, double y); \
    float name##f(float x, float y);
/* clang-format off */
ONE_ARG(acos)
ONE_ARG(asin)
ONE_ARG(atan)
ONE_ARG(cbrt)
ONE_ARG(ceil)
ONE_ARG(cos)
ONE_ARG(cosh)
ONE_ARG(erf)
ONE_ARG(exp)
ONE_ARG(exp2)
ONE_ARG(expm1)
ONE_ARG(fabs)
ONE_ARG(floor)
ONE_ARG(lgamma)
ONE_ARG(log)
ONE_ARG(log10)
ONE_ARG(log1p)
ONE_ARG(log2)
ONE_ARG(logb)
ONE_ARG(nearbyint)
ONE_ARG(rint)
ONE_ARG(round)
ONE_ARG(sin)
ONE_ARG(sinh)
ONE_ARG(sqrt)
ONE_ARG(tan)
ONE_ARG(tanh)
ONE_ARG(trunc)
TWO_ARGS(atan2)
TWO_ARGS(copysign)
TWO_ARGS(fdim)
TWO_ARGS(fmax)
TWO_ARGS(fmin)
TWO_ARGS(fmod)
TWO_ARGS(hypot)
TWO_ARGS(nextafter)
TWO_ARGS(pow)
TWO_ARGS(remainder)
#undef ONE_ARG
#undef TWO_ARGS
/* clang-format on */
long double powl(long double x, long double y);
double fma(double x, double y, double z);
float fmaf(float x, float y, float z);
double frexp(double x, int *e);
float frexpf(float x, int *e);
int ilogb(double x);
int ilogbf(float x);
double ldexp(double x, int e);
float ldexpf(float x, int e);
long lrint(double x);
long lrintf(float x);
long lround(double x);
long lroundf(float x);
long long llround(double x);
double modf(double x, double *whole);
double scalbn(double x, int e);
float scalbnf(float x, int e);
#endif
