internal import Archives
internal import BundleWriting
internal import StoreFiles
internal import SupportBundle
internal import SystemPackage

/// Estimates what files pack to, by packing samples of large ones.
struct ExportSizing {
  let fileSystem: FileSystem

  /// What was measured of files, by path, so that none is measured twice.
  private var ratios: [String: Double] = [:]

  private static let sample = 64 << 10
  private static let samples: Int64 = 24

  init(fileSystem: FileSystem) { self.fileSystem = fileSystem }

  /// About how many bytes a bundle of these files has.
  mutating func packed(_ items: [BundleItem]) throws -> Int64 {
    // Headers of the archive and the lists of sums, packed.
    var total: Int64 = 1500 + Int64(items.count) * 100
    let level = BundleWriter.packingLevel(items.reduce(0) { $0 + $1.size })
    for item in items {
      switch item.content {
      case .bytes(let bytes):
        var writer = try GzipWriter(level: level)
        var packed = try writer.write(bytes).count
        packed += try writer.finish().count
        total += Int64(packed)
      case .file(let path, let size):
        if ratios[path.string] == nil { ratios[path.string] = try ratio(of: try fileSystem.open(path), level) }
        total += Int64(Double(size) * (ratios[path.string] ?? 1))
      }
    }
    return total
  }

  private func ratio(of file: ReadableFile, _ level: Int) throws -> Double {
    guard file.count > 0 else { return 0 }
    var (taken, packed) = (0, 0)
    let step = max(Int64(Self.sample), file.count / Self.samples)
    var offset: Int64 = 0
    while offset < file.count {
      let bytes = try file.bytes(at: offset, length: Self.sample)
      guard !bytes.isEmpty else { break }
      var writer = try GzipWriter(level: level)
      packed += try writer.write(bytes).count
      packed += try writer.finish().count
      taken += bytes.count
      offset += step
    }
    return taken == 0 ? 0 : Double(packed) / Double(taken)
  }
}
