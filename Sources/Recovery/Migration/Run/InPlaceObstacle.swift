/// Why a step cannot be carried out by adding and renaming alone.
struct InPlaceObstacle: Error, Sendable, Hashable {
  /// The reason, in one plain sentence without a full stop.
  let detail: String

  init(_ detail: String) { self.detail = detail }
}
