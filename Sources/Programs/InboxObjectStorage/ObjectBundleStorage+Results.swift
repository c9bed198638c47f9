internal import Failures
internal import Foundation
package import Inbox
internal import ObjectStorage
internal import StoreFiles
internal import SystemPackage

/// What was made of bundles: an archive under a name of its own, and then a small object, once, that says which archive counts.
extension ObjectBundleStorage {
  /// The most bytes of an object that says what was made.
  private static let limit = 16 << 20

  package func result(of making: BundleMaking) throws -> StoredResult? {
    guard let result = try stored(making), let archive = result.archive else { return nil }
    if try client.head(archiveKey(archive, of: making.bundle))?.bytes == archive.bytes { return result }
    // It says nothing any more, and is made anew.
    try client.delete(resultKey(making.bundle, making: making.sum))
    return nil
  }

  private func stored(_ making: BundleMaking) throws -> StoredResult? {
    let bytes: [UInt8]
    do throws(S3Error) {
      bytes = try client.get(resultKey(making.bundle, making: making.sum), at: 0, length: Self.limit)
    } catch {
      guard error.kind == .notFound else { throw error }
      return nil
    }
    // Of another version, or of none: what is made now is another's business, and has the same names.
    guard let result = try? JSONDecoder().decode(StoredResult.self, from: Data(bytes)),
      result.isPlausible(for: making)
    else {
      throw InboxError(
        .altered, operation: "read what was made of the bundle",
        detail: "the object storage has something else where that is kept")
    }
    return result
  }

  package func keep(_ result: MadeResult, of making: BundleMaking) throws -> StoredResult {
    let folder = result.folders.bundle(making.bundle)
    let path = result.folders.root.appending("result.tar.gz")
    let received = [true, false].compactMap {
      result.folders.received(making.bundle, encrypted: $0).lastComponent?.string
    }
    let packed = try BundleArchive.pack(
      folder, leavingOut: Set(received), unchangedSince: result.before, to: path, in: fileSystem)
    let archive = InboxBundle.Archive(
      making: making.sum, mark: "\(surroundings.makeUUID())".lowercased(), sha256: packed.sha256, bytes: packed.bytes)
    let key = archiveKey(archive, of: making.bundle)
    try write(path, to: key)
    let stored = StoredResult(
      making: making, archive: archive, opened: result.opened, placedBytes: result.placedBytes)
    do throws(S3Error) {
      let bytes = try wrapped(stored)
      try client.put(resultKey(making.bundle, making: making.sum), bytes[...], when: .absent)
      return stored
    } catch {
      guard error.kind == .precondition else { throw error }
    }
    // Another worker was first, and all take what it made.
    guard let first = try self.result(of: making) else {
      throw S3Error(
        .server, operation: "keep what was made of the bundle", detail: "what another worker had made was removed")
    }
    do throws(S3Error) {
      try client.delete(key)
    } catch {
      // It is removed with other leftovers.
    }
    return first
  }

  private func wrapped(_ stored: StoredResult) throws(S3Error) -> [UInt8] {
    do {
      return try JSON.bytes(of: stored, .line, to: "keep what was made of the bundle")
    } catch {
      throw S3Error(.answer, because: error, operation: "keep what was made of the bundle")
    }
  }
}
