import ArgumentParser
import StoreCoordination

/// Whether a file that is plainly no store is moved away too.
struct ForeignFileOptions: ParsableArguments {
  @Flag(
    help:
      "Move the file even where it is nothing of the app's: another app's sound store, a text, a picture, an archive, a program. If not given, such a file is refused."
  )
  var replaceForeign = false
}

extension ParsableCommand {
  /// Stops where the file is plainly of another kind than a store, and where it is encrypted or random.
  ///
  /// What cannot be looked at is left to the verb itself.
  ///
  /// - Parameters:
  ///   - operation: what the verb would do, as an infinitive phrase.
  ///   - encrypted: whether an encrypted file is let through.
  /// - Throws: `not-a-store` or `encrypted-or-random`.
  func refuseNoStore(at path: FilePath, to operation: String, allowingEncrypted encrypted: Bool = false) throws {
    // Where it cannot be read, the verb itself says why.
    guard let head = try? FileSystem().open(path).bytes(at: 0, length: FileKind.sampleLength) else { return }
    let isDatabase = FileKind(firstBytes: head) == .database
    if isDatabase, !FileKind.looksRandom(Array(head.dropFirst(DatabaseHeader.length))) { return }
    let examination = try Examiner().examine(path, options: .init(countsRecords: false))
    if encrypted, examination.isEncryptedOrRandom { return }
    if let error = LazaretError.noStore(examination, at: path, operation: operation) { throw error }
  }
}
