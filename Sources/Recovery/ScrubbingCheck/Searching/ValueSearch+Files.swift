extension ValueSearch {
  /// Looks for names of files of eight characters and more, in every form in which it looks for values.
  package init(names: some Sequence<String>) {
    let names = names.map { Array($0.utf8) }
    var fingerprints = ValueFingerprints(bytes: Int64(clamping: max(1 << 16, 1024 * names.count)))
    for name in names { fingerprints.insert(text: name.span, 0..<name.count) }
    self.init(fingerprints, size: 0)
  }

  /// Looks for sums of files, in every form in which it looks for values; the first eight bytes of one are enough.
  package init(sums: some Sequence<[UInt8]>) {
    let sums = Array(sums)
    var fingerprints = ValueFingerprints(bytes: Int64(clamping: max(1 << 16, 1024 * sums.count)))
    for sum in sums {
      fingerprints.insert(blob: sum.span, 0..<sum.count)
      fingerprints.insert(blob: sum.span, 0..<min(8, sum.count))
    }
    self.init(fingerprints, size: 0)
  }
}
