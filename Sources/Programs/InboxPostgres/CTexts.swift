/// Texts as C takes them: an array of pointers, which hold as long as the call that is given them.
@safe struct CTexts {
  private let bytes: [UInt8]
  private let starts: [Int?]

  /// Each text with its NUL, or binary; nil for a null pointer.
  ///
  /// The array ends with one more null pointer.
  init(_ texts: [[UInt8]?]) {
    var bytes: [UInt8] = []
    var starts: [Int?] = []
    for text in texts {
      starts.append(text == nil ? nil : bytes.count)
      // An empty value needs a pointer too: a null one is NULL.
      if let text { bytes += text.isEmpty ? [0] : text }
    }
    self.bytes = bytes + [0]
    self.starts = starts + [nil]
  }

  /// Calls a function with the pointers, which hold until it ends.
  func withPointers<Result>(_ body: (UnsafePointer<UnsafePointer<CChar>?>?) -> Result) -> Result {
    unsafe bytes.withUnsafeBytes { bytes in
      let base = unsafe bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
      let pointers = unsafe starts.map { start in unsafe start.flatMap { unsafe base?.advanced(by: $0) } }
      return unsafe pointers.withUnsafeBufferPointer { unsafe body($0.baseAddress) }
    }
  }
}
