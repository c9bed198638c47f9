import Foundation
import GRDB
import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import SQLiteFormat
import SystemPackage

extension BackupProver {
  /// Restores a backup into an unnamed file and returns its problems.
  func restored(
    _ backup: StoredBackup, _ manifest: BackupManifest, in catalog: BackupCatalog, _ options: Options,
    _ progress: @escaping BackupProgress, _ found: inout BackupFileCheck.Found
  ) throws -> [BackupProof.Problem] {
    let extraction = try BackupExtraction(
      backup.id, in: catalog, fileSystem: surroundings.fileSystem, progress: progress)
    let folder = try PrivateFolder(
      in: temporary, or: (catalog.place as? FolderPlace)?.path, needing: manifest.contentBytes,
      to: "restore the backup to prove it", surroundings)
    defer { withExtendedLifetime(folder) {} }
    let path = folder.path.appending("Store.sqlite")
    var problems: [BackupProof.Problem] = []
    let (result, files) = try extraction.writeUnnamed(at: StoreFileSet(main: path))
    problems += Self.problems(result)
    // Damaged evidence cannot be opened; equal bytes are the only proof.
    if manifest.kind != .evidence, let store = files[.main] {
      if problems.isEmpty { problems += try check(store, manifest, progress) }
      let missing = problems.isEmpty ? try missingValues(store, extraction) : []
      // With a rebuilt manifest, a missing value may have been lost with the blocks.
      if manifest.rebuilt == true { problems += missing.prefix(100).map { Self.lost($0) } }
      if problems.isEmpty {
        found.warnings = try mended(found.warnings, of: manifest, in: catalog.place, from: store)
        found.manifest = try writeAnew(backup, in: catalog.place, from: store)
        if !missing.isEmpty { found.warnings.append(Self.missing(missing.count)) }
      }
    }
    problems += Self.problems(try extraction.checkExternalData())
    if problems.isEmpty, options.depth == .migrated, manifest.kind != .evidence, let model = options.model {
      // A migration creates files beside the store, so it needs a name.
      _ = try extraction.writeDatabase(to: path)
      problems += try migrated(path, to: model)
    }
    return problems
  }

  private static func problems(_ result: BackupExtraction.Result) -> [BackupProof.Problem] {
    var problems = result.damage.ordered { $0.key < $1.key }.map { BackupProof.Problem.damaged($0.value, $0.key) }
    if problems.isEmpty, !result.lostBlocks.isEmpty {
      problems.append(
        .init(
          code: "content-changed", words: "\(result.lostBlocks.count) blocks are not what was backed up",
          blocks: Array(result.lostBlocks.prefix(1000))))
    } else if problems.isEmpty, !result.isDigestRight {
      problems.append(.init(code: "content-changed", words: "the database is not what was backed up"))
    }
    return problems + result.lostItems.prefix(100).map { lost($0) }
  }

  private static func lost(_ item: String) -> BackupProof.Problem {
    .init(code: "large-value-lost", words: "the large value \(item) is damaged or missing")
  }

  private static func missing(_ count: Int) -> BackupProof.Problem {
    let words = "\(counted(count, "large value")) that records refer to \(count == 1 ? "is" : "are") not in the backup"
    return .init(code: StoredBackup.Problem.Code.largeValueMissing.rawValue, words: words)
  }

  /// Returns external values that records refer to but the backup lacks.
  private func missingValues(_ store: ReadableFile, _ extraction: BackupExtraction) throws -> [String] {
    let manifest = try extraction.manifest
    do throws(FileError) {
      let referenced = try ReferencedValues(in: store)
      guard manifest.kind == .original, let place = extraction.place as? FolderPlace else {
        return referenced.missing(from: manifest.externalData)
      }
      return try referenced.missing(
        from: place.original(manifest.id, in: extraction.section), in: surroundings.fileSystem)
    } catch {
      throw BackupError(error, store: store.path)
    }
  }

  // MARK: The restored database

  private func check(
    _ store: ReadableFile, _ manifest: BackupManifest, _ progress: @escaping BackupProgress
  ) throws -> [BackupProof.Problem] {
    var problems: [BackupProof.Problem] = []
    // Lazaret's own check: one use per page, consistent trees and indexes, all records counted.
    let examination: Examination
    do {
      examination = try Examiner(fileSystem: surroundings.fileSystem).examine(
        main: store, log: nil, journal: nil, of: StoreFileSet(main: store.path), members: [],
        options: .init(depth: .full) { done, total in progress(.checking, Int64(done), Int64(total)) })
    } catch let error as FileError where error.kind != .cancelled {
      throw BackupError(error)
    } catch {
      throw BackupError.cancelled("prove the backup")
    }
    if examination.verdict == .unavailable {
      throw BackupError(
        FileError(.other, operation: "examine the restored store", path: store.path, detail: examination.reason.words))
    }
    if examination.verdict == .damaged {
      problems.append(.init(code: examination.reason.code, words: "the restored store is damaged"))
    }
    let counted = Dictionary(examination.entities.map { ($0.name, $0.rows) }, uniquingKeysWith: { first, _ in first })
    for entity in manifest.entities ?? [] where counted[entity.name] != .some(entity.rows) {
      let rows = counted[entity.name].flatMap { $0 }.map(String.init) ?? "an unknown number of"
      problems.append(
        .init(
          code: "count-differs",
          words: "\(printable(entity.name)) has \(rows) records, and had \(entity.rows.map(String.init) ?? "?")"))
    }
    if !progress(.checking, 0, 1) { throw BackupError.cancelled("prove the backup") }
    return problems + (try Self.checkWithSQLite(store))
  }

  /// Opens the store in SQLite and runs its integrity check, without expressions of the schema.
  private static func checkWithSQLite(_ store: ReadableFile) throws -> [BackupProof.Problem] {
    let path = store.path
    do {
      let file = try VirtualFile(store)
      defer { withExtendedLifetime(file) {} }
      let queue = try EvidenceConnection.open(file, label: "Lazaret.Backup", cacheKilobytes: 8000) { database in
        for function in CoreDataFunctions.all(now: { 0 }) { database.add(function: function) }
      }
      let findings = try queue.inDatabase { database in
        try IntegrityCheck.evidenceLines(of: database, limit: 1).lines
      }
      try queue.close()
      // SQLite's messages may contain values, so only their presence counts.
      return findings == ["ok"]
        ? [] : [.init(code: "integrity-check", words: "SQLite's integrity check found damage in the restored store")]
    } catch let error as DatabaseError {
      if let kind = ResultCodeCause(error.extendedResultCode).fileErrorKind {
        throw BackupError(FileError(kind, operation: "check the restored store", path: path))
      }
      // The app's own collations and functions are unknown here, and schema expressions may exceed the limits;
      // Lazaret's own check has passed.
      if [.SQLITE_ERROR, .SQLITE_TOOBIG, .SQLITE_INTERRUPT].contains(error.resultCode) { return [] }
      return [.init(code: "integrity-check", words: "SQLite cannot open the restored store (\(error.resultCode))")]
    } catch {
      throw BackupError(FileError(.other, operation: "check the restored store", path: path))
    }
  }

  // MARK: Migrating

  private func migrated(_ store: FilePath, to model: ModelBundle) throws -> [BackupProof.Problem] {
    do throws(MigrationError) {
      _ = try Migrator(model, surroundings: surroundings).migrate(store)
      return []
    } catch {
      if error.isEnvironmental {
        throw BackupError(FileError(.other, because: error, operation: "migrate the restored store", path: store))
      }
      return [.init(code: "migration-failed", words: "it cannot be migrated to the current model: \(error.detail)")]
    }
  }
}
