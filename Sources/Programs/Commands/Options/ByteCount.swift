import ArgumentParser

/// A number of bytes on the command line: `500MB`, `10GiB`, or plainly `1000000`.
struct ByteCount: ExpressibleByArgument {
  let bytes: Int64

  init(_ bytes: Int64) { self.bytes = bytes }

  init?(argument: String) {
    let digits = argument.prefix { $0.isASCII && $0.isNumber }
    let unit = argument.dropFirst(digits.count).drop { $0 == " " }.lowercased()
    let factors: [String: Int64] = [
      "": 1, "b": 1, "k": 1 << 10, "kb": 1000, "kib": 1 << 10, "m": 1 << 20, "mb": 1_000_000, "mib": 1 << 20,
      "g": 1 << 30, "gb": 1_000_000_000, "gib": 1 << 30, "t": 1 << 40, "tb": 1_000_000_000_000, "tib": 1 << 40,
    ]
    guard let number = Int64(digits), let factor = factors[unit] else { return nil }
    let (bytes, isTooLarge) = number.multipliedReportingOverflow(by: factor)
    guard !isTooLarge, bytes > 0 else { return nil }
    self.bytes = bytes
  }

  var defaultValueDescription: String {
    for (shift, unit) in [(40, "TiB"), (30, "GiB"), (20, "MiB")] where bytes % (1 << Int64(shift)) == 0 {
      return "\(bytes >> Int64(shift))\(unit)"
    }
    return String(bytes)
  }
}
