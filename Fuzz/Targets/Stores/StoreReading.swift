internal import Foundation
internal import Lazaret
internal import ManagedObjectModel
internal import PersistentStore
internal import Platform
internal import Salvage
internal import SupportBundle
internal import SystemPackage

/// Reads bytes as stores and as what lies beside them.
enum StoreReading {
  static func run(metadata bytes: [UInt8]) throws(FuzzFailure) {
    let metadata: StoreMetadata
    do throws(PersistentStoreError) {
      metadata = try StoreMetadata(uuid: "", propertyList: bytes)
    } catch {
      return
    }
    _ = metadata.versionHashes
    _ = metadata.versionChecksum
    _ = metadata.storeType
    do throws(PersistentStoreError) {
      _ = try metadata.propertyListBytes()
    } catch {
      throw FuzzFailure("metadata that was read cannot be written: \(error.detail)")
    }
  }

  static func run(receipt bytes: [UInt8]) throws(FuzzFailure) {
    let folder = try FuzzFolder()
    let path = try folder.write(bytes, to: "2026-11-21-10-11-12.json")
    let receipt: Receipt
    do {
      receipt = try Receipt(at: path, in: FileSystem())
    } catch {
      return
    }
    _ = receipt.totalBytes
    do {
      _ = try receipt.json()
    } catch {
      throw FuzzFailure("a receipt that was read cannot be written")
    }
  }

  /// Reads a kit from its file's bytes, or from what such a file packs, with the sum that a fuzzer cannot guess.
  static func run(recoveryKit bytes: [UInt8]) throws(FuzzFailure) {
    var packed: [UInt8] = Array("LazaKit\n\u{1}".utf8)
    for number in [PageSum.of(bytes.span), UInt32(bytes.count)] {
      for shift in [24, 16, 8, 0] as [UInt32] { packed.append(UInt8(truncatingIfNeeded: number >> shift)) }
    }
    packed += RawDeflate.pack(bytes) ?? []
    for bytes in [bytes, packed] {
      let kit: RecoveryKit
      do {
        kit = try RecoveryKit(bytes: bytes)
      } catch {
        continue
      }
      _ = kit.rows
      _ = kit.hasSums
      for table in kit.tables { for group in table.groups { _ = group.keys?.count } }
      let again: RecoveryKit
      do {
        again = try RecoveryKit(bytes: try kit.bytes())
      } catch {
        throw FuzzFailure("a kit that was read cannot be written and read: \(SalvageError(kit: error).detail)")
      }
      try expect(again == kit, "a kit differs when it is written again")
    }
  }

  static func run(examination bytes: [UInt8]) throws(FuzzFailure) {
    let folder = try FuzzFolder()
    let path = try folder.write(StoreBytes(bytes))
    let before = try folder.content()
    let model = AppModel.coreData(try SeedModels.bundle())
    for depth in [Examination.Depth.quick, .full] {
      do {
        let examiner = Examiner(fileSystem: FileSystem(), settlingTime: .zero)
        _ = try examiner.examine(path, model: model, options: .init(depth: depth))
      } catch {
        throw FuzzFailure("examining a store failed: \(error)")
      }
    }
    try expect(try folder.content() == before, "examining a store changed it")
  }

  static func run(salvage bytes: [UInt8]) throws(FuzzFailure) {
    try salvage(bytes) { path, output throws(SalvageError) in
      try Salvager().salvageRaw(path, to: output, options: .init(findsDeleted: true))
    }
  }

  static func run(rebuild bytes: [UInt8]) throws(FuzzFailure) {
    let bundle = try SeedModels.bundle()
    try salvage(bytes) { path, output throws(SalvageError) in
      try Salvager().salvage(path, to: output, model: .coreData(bundle))
    }
  }

  private static func salvage(
    _ bytes: [UInt8], _ body: (FilePath, FilePath) throws(SalvageError) -> SalvageReport
  ) throws(FuzzFailure) {
    let (evidence, results) = (try FuzzFolder(), try FuzzFolder())
    let path = try evidence.write(StoreBytes(bytes))
    let before = try evidence.content()
    do throws(SalvageError) {
      _ = try body(path, results.path.appending("Out.sqlite"))
    } catch {
      // A result that does not pass its own checks, or cannot be written, is a fault of the salvage.
      try expect([.nothingFound, .unfitModel].contains(error.kind), "\(error.code): \(error)")
      try expect(try results.content().isEmpty, "something is left of a salvage that failed")
    }
    try expect(try evidence.content() == before, "salvaging a store changed it")
  }

  static func run(scrub bytes: [UInt8]) throws(FuzzFailure) {
    let evidence = try FuzzFolder()
    let path = try evidence.write(StoreBytes(bytes))
    let before = try evidence.content()
    var results: [[String: [UInt8]]] = []
    for _ in 0..<2 {
      let target = try FuzzFolder()
      do {
        let key = try ScrubbingKey([UInt8](repeating: 7, count: ScrubbingKey.length))
        _ = try StoreScrubber(key: key).scrub(StoreFileSet(main: path), into: target.path)
      } catch {
        // Where no pseudonym is free nothing is kept, and that is said.
        try expect((error as? SupportBundleError)?.kind == .valuesFound, "\(error)")
        try expect(try target.content().isEmpty, "something is left of a scrub that failed")
      }
      results.append(try target.content())
    }
    try expect(results[0] == results[1], "the same key makes other pseudonyms")
    if !results[0].isEmpty {
      try expect(results[0].mapValues(\.count) == before.mapValues(\.count), "a scrubbed file has another length")
    }
    try expect(try evidence.content() == before, "scrubbing a store changed it")
  }
}
