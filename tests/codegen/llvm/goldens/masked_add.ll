define i32 @add(ptr noalias %p0, ptr noalias %p1, i64 %p2) #0 {
entry:
  %v1 = add nsw i64 %p2, 7
  %v2 = ashr i64 %v1, 3
  br label %head3
head3:
  %v6 = phi i64 [ 0, %entry ], [ %v7, %body4 ]
  %v8 = icmp slt i64 %v6, %v2
  br i1 %v8, label %body4, label %exit5
body4:
  %v9 = mul nsw i64 %v6, -8
  %v10 = add nsw i64 %p2, %v9
  %v11 = call i64 @llvm.smax.i64(i64 %v10, i64 0)
  %v12 = call i64 @llvm.smin.i64(i64 %v11, i64 8)
  %v13 = trunc i64 %v12 to i32
  %v14 = insertelement <8 x i32> poison, i32 %v13, i64 0
  %v15 = shufflevector <8 x i32> %v14, <8 x i32> poison, <8 x i32> zeroinitializer
  %v16 = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %v15
  %v17 = mul nsw i64 %v6, 32
  %v18 = getelementptr i8, ptr %p0, i64 %v17
  %v19 = sext <8 x i1> %v16 to <8 x i32>
  %v20 = call <8 x i32> asm "", "=v,0"(<8 x i32> %v19) nounwind memory(none)
  %v21 = icmp slt <8 x i32> %v20, zeroinitializer
  %v22 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr %v18, i32 4, <8 x i1> %v21, <8 x float> zeroinitializer)
  %v23 = fadd <8 x float> %v22, splat (float 0x3FF8000000000000)
  %v24 = getelementptr i8, ptr %p1, i64 %v17
  %v25 = sext <8 x i1> %v16 to <8 x i32>
  %v26 = call <8 x i32> asm "", "=v,0"(<8 x i32> %v25) nounwind memory(none)
  %v27 = icmp slt <8 x i32> %v26, zeroinitializer
  call void @llvm.masked.store.v8f32.p0(<8 x float> %v23, ptr %v24, i32 4, <8 x i1> %v27)
  %v7 = add nsw i64 %v6, 1
  br label %head3, !llvm.loop !1
exit5:
  ret i32 0
dead28:
  unreachable
}

declare <8 x float> @llvm.masked.load.v8f32.p0(ptr, i32, <8 x i1>, <8 x float>)
declare void @llvm.masked.store.v8f32.p0(<8 x float>, ptr, i32, <8 x i1>)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
attributes #0 = { nounwind uwtable "target-cpu"="x86-64-v3" "target-features"="" "prefer-vector-width"="256" "min-legal-vector-width"="256" }
!0 = !{!"llvm.loop.unroll.disable"}
!1 = distinct !{!1, !0}
!llvm.module.flags = !{!1000000, !1000001}
!1000000 = !{i32 8, !"cf-protection-branch", i32 1}
!1000001 = !{i32 8, !"cf-protection-return", i32 1}
