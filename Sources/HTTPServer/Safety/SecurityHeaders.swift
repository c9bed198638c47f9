/// The header fields of every response.
enum SecurityHeaders {
  /// Own files only: no inline scripts, no framing, forms to this server only.
  static let policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; font-src 'self'; "
    + "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

  static func added(to response: Response) -> Response {
    var copy = response
    copy.headers.set("Content-Security-Policy", policy)
    copy.headers.set("X-Content-Type-Options", "nosniff")
    copy.headers.set("Referrer-Policy", "no-referrer")
    copy.headers.set("X-Frame-Options", "DENY")
    copy.headers.set("Cross-Origin-Opener-Policy", "same-origin")
    copy.headers.set("Cross-Origin-Resource-Policy", "same-origin")
    copy.headers.set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
    if copy.headers["Cache-Control"] == nil { copy.headers.set("Cache-Control", "no-store") }
    return copy
  }
}
