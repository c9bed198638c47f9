import Foundation
import Inbox
import Lazaret
import ManagedObjectModel
import ObjectStorage
import Platform
import SupportBundle
import SwiftModelSources
import SystemPackage

enum InboxWorkers {
  /// - Throws: if a file is no model that a worker reads.
  static func check(_ models: [FilePath]) throws {
    for path in models {
      let isOther = try ModelCarrier(path) != nil || ModelHistory(path) != nil
      guard try isOther || SwiftSources.isSource(path) else { continue }
      throw ModelError(
        .notAModel, path: path, detail: "the workers of an inbox read models, and no Swift sources or stores",
        hint: "Give the inbox a compiled model, such as lazaret model export writes.")
    }
  }

  /// - Throws: `inbox-address` for shared bundles without shared records, or without any worker.
  static func check(database: PostgresAddress?, bundles: S3Address?, workers: Int) throws(InboxError) {
    if bundles != nil, database == nil {
      throw InboxError(
        .address, operation: "open the inbox",
        detail: "bundles in object storage need records in a database, and none is named",
        hint: "Give --database, or name it in LAZARET_DATABASE.")
    }
    if workers < 1, bundles == nil {
      throw InboxError(
        .address, operation: "open the inbox", detail: "without workers the bundles would be opened nowhere",
        hint: "Give 1 to 16 --workers; 0 is for --bundles, where lazaret work does it.")
    }
  }

  /// Checks the secret key's file at once, instead of with every bundle; does not keep the key.
  static func identity(_ path: PathArgument?) throws -> FilePath? {
    let fileSystem = FileSystem()
    guard let identity = try path.map({ try fileSystem.realPath($0.path) }) else { return nil }
    let bytes = try fileSystem.contents(of: identity, limit: 1 << 20)
    do {
      _ = try AgeIdentity.identities(in: String(decoding: bytes, as: UTF8.self))
    } catch {
      throw CommandError(.unreadableIdentity, because: error, operation: "read the secret key", path: identity)
    }
    return identity
  }

  /// Makes idle worker processes of this program.
  ///
  /// - Parameters:
  ///   - order: a model's version names, oldest first.
  ///   - receives: whether this process receives.
  ///   - retention: nil keeps all.
  static func pool(
    _ inbox: Inbox, count: Int, identity: FilePath?, models: [FilePath], order: [String]?, receives: Bool,
    retention: InboxRetention? = nil
  ) throws -> WorkerPool {
    let fileSystem = FileSystem()
    guard let executable = PublicFolder.executable(fileSystem) else {
      throw FileError(
        .notFound, operation: "find this program", path: nil, detail: "the system does not tell where it is")
    }
    return WorkerPool(
      inbox,
      options: WorkerPool.Options(
        count: count, identity: identity, models: try models.map { try fileSystem.realPath($0) }, versionOrder: order,
        resources: resources, receives: receives, retention: retention,
        onPruning: { pruning in
          for failure in pruning.failures {
            Terminal.standardError.write(
              "lazaret: the files of the bundle \(failure.bundle) cannot be removed: \(printable(failure.words))\n")
          }
        },
        onTrouble: { part, error in Terminal.standardError.write("lazaret: \(words(part, error))\n") }),
      runner: WorkProcess(executable, ["inbox-worker"]))
  }

  private static func words(_ part: WorkerPool.Options.Part, _ error: (any Error)?) -> String {
    let what =
      switch part {
      case .jobs: "work at the jobs of the inbox"
      case .receiving: "keep what has arrived in the inbox"
      case .removing: "remove what the inbox keeps no longer"
      }
    guard let error else { return "can \(what) again" }
    let detail = (error as? any ReportableError).map { "\($0.detail) (\($0.code))" } ?? "an unforeseen failure"
    return "cannot \(what) now, and tries again: \(printable(detail))"
  }

  /// A worker's limits; the environment can change them, in MiB and seconds.
  private static var resources: WorkLimits {
    var limits = WorkLimits()
    let environment = ProcessInfo.processInfo.environment
    if let memory = environment["LAZARET_WORKER_MEMORY"].flatMap(UInt64.init), (64...1 << 20).contains(memory) {
      limits.memory = memory << 20
    }
    if let seconds = environment["LAZARET_WORKER_SECONDS"].flatMap(Int.init), (1...86_400).contains(seconds) {
      limits.seconds = seconds
    }
    return limits
  }
}

enum PublicFolder {
  /// Returns the first of: `LAZARET_PUBLIC`; `../share/lazaret/Public` beside the executable; `Public` in a folder
  /// above it, for builds among the sources.
  ///
  /// The program contains no path of the build machine.
  ///
  /// - Throws: `file-not-found` without a stylesheet.
  static func find() throws -> FilePath {
    let system = FileSystem()
    if let named = ProcessInfo.processInfo.environment["LAZARET_PUBLIC"], !named.isEmpty { return FilePath(named) }
    var candidates: [FilePath] = []
    if let executable = executable(system) {
      var folder = executable.removingLastComponent()
      candidates.append(folder.removingLastComponent().appending("share/lazaret/Public"))
      for _ in 0..<8 where folder.lastComponent != nil {
        candidates.append(folder.appending("Public"))
        folder.removeLastComponent()
      }
    }
    for candidate in candidates where try system.status(of: candidate.appending("lazaret.css")) != nil {
      return candidate
    }
    throw FileError(
      .notFound, operation: "find the files of the pages", path: candidates.first,
      detail: "they are not near the executable",
      hint: "Put the folder Public into ../share/lazaret beside the executable, or name it in LAZARET_PUBLIC.")
  }

  static func executable(_ system: FileSystem) -> FilePath? {
    for candidate in ["/proc/self/exe", CommandLine.arguments.first].compactMap(\.self) {
      // A bare name was found by PATH; only the system knows the file.
      if let path = try? system.realPath(FilePath(candidate)) { return path }
    }
    return nil
  }
}
