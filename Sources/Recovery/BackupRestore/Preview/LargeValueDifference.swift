import Backup
import StoreFiles
import SystemPackage

/// The comparison of the files that records of a restored backup refer to with those beside the present store.
struct LargeValueDifference {
  private let fileSystem: FileSystem

  /// How much of two files is compared at once, in bytes.
  private static let stride = 1 << 20

  init(_ fileSystem: FileSystem) { self.fileSystem = fileSystem }

  /// Compares the files of some names, which tell what they hold: each value that is written gets a new one.
  func compare(
    _ names: Set<String>, backup: StoreFileSet, present: StoreFileSet
  ) throws(FileError) -> RestorePreview.LargeValues {
    var values = RestorePreview.LargeValues()
    for name in names.sorted() {
      let path = FilePath(ReferencedValues.path(name)).components
      let own = backup.path(of: .externalData).appending(path)
      let other = present.path(of: .externalData).appending(path)
      let isOther = try fileSystem.status(of: other)?.kind == .regular
      if try fileSystem.status(of: own)?.kind != .regular {
        if isOther { values.lost += 1 }
      } else if !isOther {
        values.added += 1
      } else if try !isSame(own, other) {
        values.changed += 1
      }
    }
    return values
  }

  /// Whether two files have the same content.
  func isSame(_ one: FilePath, _ other: FilePath) throws(FileError) -> Bool {
    let (first, second) = (try fileSystem.open(one), try fileSystem.open(other))
    guard first.count == second.count else { return false }
    var offset: Int64 = 0
    while offset < first.count {
      let bytes = try first.bytes(at: offset, length: Self.stride)
      guard try second.bytes(at: offset, length: Self.stride) == bytes, !bytes.isEmpty else { return false }
      offset += Int64(bytes.count)
    }
    return true
  }
}
