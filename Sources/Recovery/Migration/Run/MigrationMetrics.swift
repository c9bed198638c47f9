internal import Foundation
internal import StoreFiles

/// What a migration cost, in numbers; one line of `migrations.jsonl`.
public struct MigrationMetrics: Sendable, Hashable, Codable {
  /// When it ended, in RFC 3339.
  public var date: String

  /// The store's file name.
  public var store: String

  /// The version that the store was of; nil where the app has none of that name.
  public var from: String?

  /// The version that it is of now.
  public var to: String

  /// The number of steps, those of earlier runs included.
  public var steps: Int

  /// The steps that an earlier run had finished.
  public var resumedSteps: Int

  /// How long it took in this run, in seconds.
  public var seconds: Double

  /// The records of the last step.
  public var rows: Int

  /// The most memory that the process has had so far, in bytes; nil where the system does not tell.
  public var peakMemory: Int64?

  /// The size of the store before, external files left out, in bytes.
  public var bytesBefore: Int64

  /// The size of the store now, external files left out, in bytes.
  public var bytesAfter: Int64

  /// The metrics in words, on one line.
  public var words: String {
    let memory = peakMemory.map { ", \(readableSize($0)) of memory" } ?? ""
    let time = String(format: "%.3f", seconds)
    return "\(from ?? "the store's model") → \(to) in \(counted(steps, "step")): \(counted(rows, "row")), \(time) s"
      + "\(memory), \(counted(bytesBefore, "byte")) before, \(grouped(bytesAfter)) after"
  }

  /// The most memory that this process has had, in bytes; nil where the system does not tell.
  static func processPeakMemory() -> Int64? {
    // Only Linux has the file; what cannot be read is not told.
    guard let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8) else { return nil }
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
    return line?.split(separator: " ").compactMap { Int64($0) }.first.map { $0 * 1024 }
  }
}
